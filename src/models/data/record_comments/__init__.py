"""Comments on records: what members say to each other about one, in threads."""
