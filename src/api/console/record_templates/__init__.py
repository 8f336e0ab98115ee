"""Pages of record templates."""
