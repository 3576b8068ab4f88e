"""Data: the embedded demo, synthetic streams, and a reader for the user's own tables."""
