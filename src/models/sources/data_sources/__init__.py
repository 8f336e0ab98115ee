"""Data sources: where the rows of a database come from."""
