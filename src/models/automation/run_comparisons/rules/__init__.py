"""Pure rules of comparisons: `alignment` of the nodes of two runs, `differences` of values."""
