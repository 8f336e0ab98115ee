"""Runs that bring rows or workspaces in: refreshes, imports, legacy imports."""
