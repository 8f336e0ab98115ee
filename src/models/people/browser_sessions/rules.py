"""Tokens and lifetimes of sessions in a browser (ADR 0082)."""

import re
import secrets
from datetime import timedelta

LIFETIME = timedelta(days=7)
"""The longest time a session lasts, however much it is used."""
IDLE = timedelta(hours=24)
"""The time after its last use at which a session ends."""
USE_WRITTEN_EVERY = timedelta(minutes=1)
"""The least time between two writes of a session's last use."""
LINK_LIFETIME = timedelta(minutes=30)

_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def new_token() -> str:
    """A secret that nobody guesses: 256 random bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def is_well_formed(token: str) -> bool:
    """True for what `new_token` may have made."""
    return _TOKEN.fullmatch(token) is not None
