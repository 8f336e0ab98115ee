"""Queries of other people's databases: read-only, bounded, each in a process of its own."""
