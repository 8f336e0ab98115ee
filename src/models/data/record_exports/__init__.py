"""Exports: the records of a database as a spreadsheet file."""
