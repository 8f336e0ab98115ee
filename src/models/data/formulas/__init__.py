"""Formulas: CEL over the fields of one record, typed by them (interface.md#formulas)."""
