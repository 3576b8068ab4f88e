"""Comparisons: trivial references that every table shows."""
