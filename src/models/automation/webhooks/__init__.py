"""Webhooks: calls of others that start runs, their verification, deduplication and answers."""
