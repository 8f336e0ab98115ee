"""Stored files: a row for each, its bytes in the object store, and the tokens of download URLs."""
