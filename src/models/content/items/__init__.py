"""The tree of items: where everything in a workspace is placed and who may see it."""
