"""Databases and the fields that type their records."""
