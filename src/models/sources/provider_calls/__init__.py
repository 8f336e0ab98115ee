"""Calls to a provider while somebody waits: a page of a listing, a content, a test."""
