"""Rows as people have them: tables, names and times that come in, windows and scales that are made of them."""
