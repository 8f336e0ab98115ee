"""Incidents: failed runs that failed alike, told about once (ADR 0094)."""
