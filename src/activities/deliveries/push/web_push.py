"""Web Push: encrypted for one browser (RFC 8291), signed as ours (RFC 8292), sent by RFC 8030."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

from activities.deliveries.push.messages import (
    LIFETIME_SECONDS,
    Push,
    Pusher,
    again,
    dead,
    delivered,
    refused,
)
from models.messages.deliveries.rules import Answer
from runtime import base64url
from runtime.clock import utc_now
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest, OutboundResponse

if TYPE_CHECKING:
    from runtime.push_keys import VapidKey

SECONDS = 30
TOKEN_SECONDS = 12 * 3_600
"""RFC 8292 allows a day."""
MAX_ANSWER_BYTES = 64 * 1024

_POINT_BYTES, _SECRET_BYTES = 65, 16
_OTHER_KEY = {401, 403}
"""The statuses a push service answers to another key than the subscription's own."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The address of a browser, and its keys."""

    endpoint: str
    point: bytes
    secret: bytes

    @classmethod
    def parse(cls, text: str) -> "Subscription | None":
        """From `JSON.stringify(subscription)`; None for what is no subscription."""
        try:
            given: Any = json.loads(text)
            keys = given["keys"]
            point, secret = _bytes(keys["p256dh"]), _bytes(keys["auth"])
            endpoint = given["endpoint"]
            ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        whole = len(point) == _POINT_BYTES and len(secret) == _SECRET_BYTES
        if not whole or not isinstance(endpoint, str) or not endpoint.startswith("http"):
            return None
        return cls(endpoint, point, secret)


class WebPush(Pusher):
    """Pushes to browsers, by whatever push service each has chosen.

    A subscription takes only what is signed by the key it was made with (RFC 8292, 4.2); older keys
    serve browsers that have not subscribed anew.
    """

    def __init__(self, outbound: OutboundClient, *keys: "VapidKey") -> None:
        self._outbound = outbound
        self._keys = keys

    @override
    async def push(self, push: Push) -> Answer:
        subscription = Subscription.parse(push.token)
        if subscription is None:
            return dead(None, "The token is no subscription to Web Push.")
        for key in self._keys:
            response = await self._send(push, subscription, key)
            if response.status not in _OTHER_KEY:
                break
        match response.status:
            case status if 200 <= status < 300:
                return delivered(status)
            case 404 | 410 as status:
                return dead(status, "The subscription has ended.")
            case status if response.retryable:
                return again(status, "push_service", response.retry_after)
            case status:
                return refused(status, "push_service")

    async def _send(
        self, push: Push, subscription: Subscription, key: "VapidKey"
    ) -> OutboundResponse:
        return await self._outbound.send(
            OutboundRequest(
                method="POST",
                url=subscription.endpoint,
                headers=_headers(push, subscription.endpoint, key),
                body=encrypted(_payload(push), subscription),
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )


def _headers(push: Push, endpoint: str, key: "VapidKey") -> Mapping[str, str]:
    url = urlsplit(endpoint)
    expires = int(utc_now().timestamp()) + TOKEN_SECONDS
    token = key.token(f"{url.scheme}://{url.netloc}", expires)
    return {
        "Authorization": f"vapid t={token}, k={key.public}",
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(LIFETIME_SECONDS),
        # A repetition replaces what the browser has not got yet.
        "Topic": base64url.encode(push.id.bytes),
        "Urgency": "high",
    }


def encrypted(payload: bytes, subscription: Subscription) -> bytes:
    """The payload as only this browser reads it; the sender's key is made for this one message."""
    sealed: bytes = http_ece.encrypt(
        payload,
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=subscription.point,
        auth_secret=subscription.secret,
        version="aes128gcm",
    )
    return sealed


def _payload(push: Push) -> bytes:
    shown = {"title": push.title, "body": push.body, "data": dict(push.data)}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()


def _bytes(text: object) -> bytes:
    raw = base64url.decode(text.rstrip("=")) if isinstance(text, str) else None
    if raw is None:
        raise ValueError("no base64url")
    return raw
