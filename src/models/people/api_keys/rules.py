"""The form of an API key, and the bounds of its life (decisions C4)."""

import re
import secrets
import zlib
from datetime import datetime, timedelta

from runtime.errors import ValidationError

PREFIX = "svc_sk_"
SHOWN = 14
"""Leading characters of a key that listings show."""

MAX_LIFETIME = timedelta(days=3660)

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM = 43
_CHECKSUM = 6
_SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM + _CHECKSUM}}}")


def new_token() -> str:
    """A fresh secret of 256 bits with its checksum."""
    body = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """True when a text can be a key at all: typos are answered without a database."""
    if not _SHAPE.fullmatch(token):
        return False
    return _checksum(token[:-_CHECKSUM]) == token[-_CHECKSUM:]


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """A key expires in the future, at most ten years ahead; raises ValidationError."""
    if expires_at is None:
        return
    if expires_at <= now:
        raise ValidationError.at("expiresAt", "The expiry must lie in the future.")
    if expires_at > now + MAX_LIFETIME:
        raise ValidationError.at("expiresAt", "The expiry must be within ten years.")


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode())
    digits = ""
    for _ in range(_CHECKSUM):
        value, digit = divmod(value, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
