"""Authorizations: connections that a user makes by signing in at a provider (RFC 6749)."""
