"""Webhook endpoints: servers that hear what happens in a workspace."""
