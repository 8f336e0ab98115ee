"""The rules of plans and drafts. Pure."""
