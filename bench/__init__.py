"""Ours against floors, interleaved in one run and printed as ratios."""
