"""Imports: resources of providers copied into native content, and refreshed there."""
