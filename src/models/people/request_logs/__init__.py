"""The request log: one row per authenticated call (interface, API request log entry)."""
