"""Pauses: work that arrives meanwhile is accepted, queued in order, and started after a resume."""
