"""Tokens of invitations and how long they are valid."""

import secrets
from datetime import timedelta

LIFETIME = timedelta(days=7)
_TOKEN_BYTES = 32


def new_token() -> str:
    """A fresh secret of 256 bits, safe in a path."""
    return secrets.token_urlsafe(_TOKEN_BYTES)
