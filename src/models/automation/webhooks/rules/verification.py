"""Verifying that a call was signed with the secret: over the raw bytes, in constant time.

Sources: Standard Webhooks, "Verifying webhooks"; RFC 7617 for `basic`.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Sequence
from datetime import datetime

from models.automation.automations.rules.triggers.webhooks import SECRET_HEADER, Signature, Webhook
from models.automation.webhooks.rules.delivery import Delivery

_SCHEME = re.compile(r"\A(?:sha256|v[0-9])=")
"""The prefix some senders write before the signature; base64 may end like it."""
_LONGEST_TIMESTAMP = 12


def is_genuine(webhook: Webhook, secrets: Sequence[str], delivery: Delivery, now: datetime) -> bool:
    """True when one of the secrets verifies the call; with the auth `none` every call passes."""
    if webhook.auth == "none":
        return True
    if webhook.auth == "basic":
        return _any_equal([secret.encode() for secret in secrets], _password(delivery))
    if webhook.auth == "header":
        shown = _shown(delivery, webhook.header or SECRET_HEADER)
        return _any_equal([secret.encode() for secret in secrets], shown)
    verify = _standard if webhook.signing.scheme == "standard_webhooks" else _hmac
    return verify(webhook.signing, secrets, delivery, now)


def _standard(
    signature: Signature, secrets: Sequence[str], delivery: Delivery, now: datetime
) -> bool:
    message_id = delivery.header("webhook-id")
    timestamp = delivery.header("webhook-timestamp")
    signatures = delivery.header("webhook-signature")
    if not message_id or not signatures or not _is_timely(timestamp, signature, now):
        return False
    content = f"{message_id}.{timestamp}.".encode("latin-1") + delivery.body
    expected = [base64.b64encode(_digest(_standard_key(secret), content)) for secret in secrets]
    given = [text[3:].encode() for text in signatures.split(" ") if text.startswith("v1,")]
    return _any_equal(expected, given)


def _hmac(signature: Signature, secrets: Sequence[str], delivery: Delivery, now: datetime) -> bool:
    value = delivery.header(signature.header or "")
    if not value:
        return False
    timestamp, signatures = _read(signature, delivery, value)
    if signature.timestamp_header is not None and not _is_timely(timestamp, signature, now):
        return False
    before, _, after = signature.content.replace("{timestamp}", timestamp or "").partition("{body}")
    content = before.encode() + delivery.body + after.encode()
    digests = [_digest(secret.encode(), content) for secret in secrets]
    if signature.encoding == "hex":
        expected = [digest.hex().encode() for digest in digests]
        return _any_equal(expected, [text.lower().encode() for text in signatures])
    return _any_equal(
        [base64.b64encode(one) for one in digests], [text.encode() for text in signatures]
    )


def _read(signature: Signature, delivery: Delivery, value: str) -> tuple[str | None, list[str]]:
    """The timestamp and the signatures of a call."""
    name = signature.timestamp_header
    if name is None or name.lower() != (signature.header or "").lower():
        return delivery.header(name) if name else None, [_SCHEME.sub("", value)]
    parts = [part.strip().partition("=") for part in value.split(",")]
    timestamps = [text for key, _, text in parts if key == "t"]
    return timestamps[0] if len(timestamps) == 1 else None, [
        text for key, _, text in parts if key.startswith("v")
    ]


def _is_timely(timestamp: str | None, signature: Signature, now: datetime) -> bool:
    """True when seconds since the epoch lie within the tolerance, both ways."""
    if timestamp is None or len(timestamp) > _LONGEST_TIMESTAMP:
        return False
    if not (timestamp.isascii() and timestamp.isdigit()):
        return False
    return abs(now.timestamp() - int(timestamp)) <= signature.tolerance_seconds


def _standard_key(secret: str) -> bytes:
    """The bytes behind `whsec_`; a secret that is not base64 is its own key."""
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return secret.encode()


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _password(delivery: Delivery) -> list[bytes]:
    scheme, _, encoded = (delivery.header("authorization") or "").partition(" ")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return []
    _, colon, password = decoded.partition(b":")
    return [password] if colon and scheme.lower() == "basic" else []


def _shown(delivery: Delivery, header: str) -> list[bytes]:
    value = delivery.header(header)
    if value is None:
        return []
    if header.lower() == "authorization" and value[:7].lower() == "bearer ":
        value = value[7:]
    return [value.encode("latin-1")]


def _any_equal(expected: Sequence[bytes], given: Sequence[bytes]) -> bool:
    """True when a given signature is an expected one. Every pair is compared, in constant time."""
    return any([hmac.compare_digest(one, other) for one in expected for other in given])  # noqa: C419
