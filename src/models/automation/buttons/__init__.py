"""Buttons: fields of records that run an action."""
