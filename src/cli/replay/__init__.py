"""Histories of executions: found, kept, and replayed against the code of this checkout."""
