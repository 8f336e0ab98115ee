"""Databases: create, change, convert and remove them and their fields."""
