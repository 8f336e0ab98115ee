"""Pages for people, whole from this package: nothing of them comes from elsewhere."""
