"""Declarations by which a noun describes its rows in a bundle: a whole workspace in one file."""
