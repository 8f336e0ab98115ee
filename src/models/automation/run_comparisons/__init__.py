"""Comparisons of two runs of an automation: node by node, and where they first differ."""
