"""Tickets: each opens one realtime connection, once and soon."""
