"""Stored files: rows that say what an object of the store is, and the tokens that open it."""
