"""What a person who watches a run sees: its graph, and how far each node of it has come."""
