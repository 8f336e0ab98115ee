"""Targets: what stands behind an item, and how each kind of it is made, copied and shown."""
