"""Starters: whole workspaces to begin with, shipped as templates or drafted from a description."""
