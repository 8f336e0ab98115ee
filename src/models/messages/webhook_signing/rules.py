"""Signatures of outgoing webhooks (Standard Webhooks, symmetric scheme `v1`). Pure."""

import base64
import hmac
from collections.abc import Mapping, Sequence

from models.core.base import Id

PREFIX = "whsec_"
SECRET_BYTES = 32


def secret_place(workspace_id: Id) -> str:
    """The place that the sealed secret of a workspace is bound to."""
    return f"webhook_signing_secret|{workspace_id}|sealed"


def secret_text(secret: bytes) -> str:
    """The secret as receivers' libraries take it."""
    return PREFIX + base64.b64encode(secret).decode()


def signed_headers(
    secrets: Sequence[bytes], message_id: str, timestamp: int, body: bytes
) -> Mapping[str, str]:
    """The three headers of an attempt at `timestamp` (seconds since the epoch).

    It has a signature by each secret: two of them while a secret is changed.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = [hmac.digest(secret, signed, "sha256") for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(digest).decode()}" for digest in digests
        ),
    }
