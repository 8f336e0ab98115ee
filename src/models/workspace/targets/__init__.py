"""Targets: what stands behind items, created, copied and shown together with them."""
