"""The offline stage: what many sources teach, all of one shape at once."""
