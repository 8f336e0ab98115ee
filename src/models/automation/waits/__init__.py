"""Waits of runs: nodes that continue when a member decides, or when an event arrives."""
