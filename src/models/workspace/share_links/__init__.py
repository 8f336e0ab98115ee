"""Share links: public access to one item by a token (interface.md#share-links)."""
