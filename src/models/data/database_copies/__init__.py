"""Copies of databases: made by a job, and visible only when they are complete."""
