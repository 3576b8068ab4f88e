"""Scores: point, probabilistic, and distances between samples."""
