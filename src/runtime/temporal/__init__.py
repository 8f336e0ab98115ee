"""Temporal as the platform uses it: client, outbox, options of executions."""
