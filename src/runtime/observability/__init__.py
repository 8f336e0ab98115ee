"""Logs, metrics and traces of the processes."""
