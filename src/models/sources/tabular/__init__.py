"""Tables of foreign rows: what their cells mean, and which fields their columns fill."""
