"""Formulas: CEL over the fields of one record, typed by them (decisions C5, C11)."""
