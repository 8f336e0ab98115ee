"""Legacy import runs: whole workspaces imported from a bundle, reviewed before and reversible."""
