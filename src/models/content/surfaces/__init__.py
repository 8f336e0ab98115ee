"""Surfaces: the blocks of pages, notes, canvases, dashboards and records."""
