"""The engine's pure heart: what a graph means, and what its run does next."""
