"""Bringing foreign rows in: fetching, reading, staging, applying."""
