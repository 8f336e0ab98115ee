"""Pure rules of waiting nodes: which responses count, and how they resolve a wait."""
