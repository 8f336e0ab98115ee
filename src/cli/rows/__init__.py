"""Bringing rows in from the command line: `workspace import` and `workspace refresh`."""
