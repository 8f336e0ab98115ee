"""Pauses: work that comes in meanwhile is accepted, rests in order, and starts after a resume."""
