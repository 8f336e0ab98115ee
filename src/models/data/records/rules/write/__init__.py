"""Writes of records: values checked, options added, upserts matched, states planned."""
