"""Formulas, and the fields that follow from others by them. Pure."""
