"""Webhook endpoints: servers that are told what happens in a workspace."""
