"""Legacy import runs: whole workspaces that come in as a bundle, reviewed before and reversible."""
