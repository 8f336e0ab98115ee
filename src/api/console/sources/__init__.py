"""Pages of data sources: where rows come from, and their refreshes."""
