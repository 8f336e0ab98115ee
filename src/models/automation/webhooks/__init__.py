"""Webhooks that others call: who may, what counts as the same call, and what they are answered."""
