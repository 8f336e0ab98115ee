"""Items that can be shared, and the two secrets of a link: its token and a visitor's session."""

import secrets
from datetime import UTC, datetime, timedelta

from models.content.items.rules import ItemKind
from models.core.base import Id
from runtime import base64url
from runtime.crypto import KeyRing, fingerprint

SHAREABLE = frozenset(
    {
        ItemKind.FOLDER,
        ItemKind.PAGE,
        ItemKind.NOTE,
        ItemKind.DASHBOARD,
        ItemKind.CANVAS,
        ItemKind.VIEW,
        ItemKind.FORM,
        ItemKind.DATABASE,
        ItemKind.FILE,
    }
)
"""The kinds of items that a link may open (decisions C13)."""

MAX_USES = 1_000_000_000

VISIT = timedelta(hours=1)
"""The time for which a session lets a visitor read without another use of the link."""

_TOKEN_BYTES = 32
_EXPIRY_BYTES = 6
_MAC_BYTES = 16


def new_token() -> str:
    """A fresh secret of 256 bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def new_session(keys: KeyRing, link_id: Id, expires_at: datetime) -> str:
    """A signed text that proves until `expires_at` that a visitor was admitted; never stored."""
    expiry = int(expires_at.timestamp()).to_bytes(_EXPIRY_BYTES, "big")
    mac = keys.sign(_message(link_id, expiry))[:_MAC_BYTES]
    return base64url.encode(expiry + mac)


def read_session(keys: KeyRing, link_id: Id, session: str, now: datetime) -> datetime | None:
    """The expiry of a session of this link; None for an expired one and for any other text."""
    raw = base64url.decode(session) or b""
    expiry, mac = raw[:_EXPIRY_BYTES], raw[_EXPIRY_BYTES:]
    if not keys.verify(_message(link_id, expiry), mac, _MAC_BYTES):
        return None
    expires_at = datetime.fromtimestamp(int.from_bytes(expiry, "big"), UTC)
    return expires_at if expires_at > now else None


def _message(link_id: Id, expiry: bytes) -> bytes:
    return fingerprint(b"share session", link_id.bytes, expiry)
