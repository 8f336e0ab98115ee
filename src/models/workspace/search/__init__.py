"""Search: what in a workspace is called something."""
