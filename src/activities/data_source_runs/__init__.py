"""The activities of runs that bring rows in."""
