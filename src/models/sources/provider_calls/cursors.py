"""Cursors of providers, wrapped so that each comes back with the listing that gave it only."""

from pydantic_core import to_json

from models.core.access.rules import Actor
from models.core.base import JsonObject
from runtime import base64url
from runtime.crypto import KeyRing, fingerprint
from runtime.errors import ValidationError

_SIGNATURE_BYTES = 16


def wrapped(keys: KeyRing, actor: Actor, listing: JsonObject, cursor: str | None) -> str | None:
    """A provider's cursor as the client gets it."""
    if cursor is None:
        return None
    payload = cursor.encode()
    signature = keys.sign(_context(actor, listing) + payload)[:_SIGNATURE_BYTES]
    return base64url.encode(signature + payload)


def unwrapped(keys: KeyRing, actor: Actor, listing: JsonObject, cursor: str | None) -> str | None:
    """The provider's cursor. Raises ValidationError for one that this listing did not give."""
    if cursor is None:
        return None
    raw = base64url.decode(cursor) or b""
    signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not keys.verify(_context(actor, listing) + payload, signature, _SIGNATURE_BYTES):
        raise ValidationError.at(
            "cursor", "The cursor is not one this listing gave; start again without it."
        )
    return payload.decode()


def _context(actor: Actor, listing: JsonObject) -> bytes:
    question = to_json(sorted(listing.items()))
    return fingerprint(b"browse", actor.workspace_id.bytes, actor.user_id.bytes, question)
