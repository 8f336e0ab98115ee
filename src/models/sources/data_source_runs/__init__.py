"""Runs that bring rows into a database: refreshes of data sources and imports of spreadsheets."""
