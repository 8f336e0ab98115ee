"""Data sources: rows from elsewhere that fill a database."""
