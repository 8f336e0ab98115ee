"""Webhook endpoints: servers that the events of a workspace are sent to."""
