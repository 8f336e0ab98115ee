"""Overviews of runs for their pages: the graph, and the progress of each node."""
