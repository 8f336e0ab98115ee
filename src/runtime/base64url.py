"""Bytes as text for URLs and tokens: base64url without padding (RFC 4648, 5), in one spelling."""

import base64
import binascii


def encode(raw: bytes) -> str:
    """The only text that `decode` takes for these bytes."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes | None:
    """The bytes; None for a text that `encode` never gives.

    Decoders take padding, the signs of the other alphabet, and any unused bits of the last sign. So
    a secret would have several spellings, and what compares or blocks one would miss the others.
    """
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return None
    return raw if encode(raw) == text else None
