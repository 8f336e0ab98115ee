"""Feeds: what happens in a workspace, sent to connected clients as it is committed."""
