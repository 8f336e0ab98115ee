"""The language model that a workspace has its drafts and plans written by."""
