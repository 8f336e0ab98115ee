"""Which language model a workspace has its drafts and plans written by."""
