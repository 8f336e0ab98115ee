"""Saved filters of lists of runs: of one member, or shared in a workspace."""
