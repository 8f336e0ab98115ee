"""Queries and writes of records: checked, compiled and planned without a database."""
