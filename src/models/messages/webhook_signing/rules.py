"""Signatures of outgoing webhooks (Standard Webhooks, symmetric scheme `v1`). Pure."""

import base64
import hmac
from collections.abc import Mapping

PREFIX = "whsec_"
SECRET_BYTES = 32


def secret_text(secret: bytes) -> str:
    """The secret as receivers' libraries take it."""
    return PREFIX + base64.b64encode(secret).decode()


def signed_headers(
    secret: bytes, message_id: str, timestamp: int, body: bytes
) -> Mapping[str, str]:
    """The three headers of an attempt at `timestamp` (seconds since the epoch)."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
