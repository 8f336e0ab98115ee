"""Apple Push Notification service: HTTP/2, with tokens that the team's own key signs."""

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

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
from runtime.clock import utc_now
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest, OutboundResponse

if TYPE_CHECKING:
    from runtime.push_keys import ApnsKey

SECONDS = 30
RENEWED_AFTER = 40 * 60
"""Seconds; APNs refuses tokens older than an hour, and teams that renew more often than in 20
minutes."""
MAX_ANSWER_BYTES = 64 * 1024

_DEAD = frozenset({"BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered", "ExpiredToken"})
"""Reasons after which a token is to be forgotten."""
_STALE = "ExpiredProviderToken"


class Apns(Pusher):
    """Pushes to the devices that have one app; `outbound` speaks HTTP/2 and keeps connections."""

    def __init__(self, outbound: OutboundClient, key: "ApnsKey", url: str) -> None:
        self._outbound = outbound
        self._key = key
        self._url = url
        self._token = ""
        self._until = 0.0

    @override
    async def push(self, push: Push) -> Answer:
        now = int(utc_now().timestamp())
        response = await self._outbound.send(
            OutboundRequest(
                method="POST",
                url=f"{self._url}/3/device/{quote(push.token, safe='')}",
                headers={
                    "authorization": f"bearer {self._provider_token(now)}",
                    "apns-id": str(push.id),
                    "apns-collapse-id": str(push.id),
                    "apns-topic": self._key.topic,
                    "apns-push-type": "alert",
                    "apns-priority": "10",
                    "apns-expiration": str(now + LIFETIME_SECONDS),
                    "content-type": "application/json",
                },
                body=_payload(push),
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        return self._read(response)

    def _read(self, response: OutboundResponse) -> Answer:
        status, reason = response.status, _reason(response)
        if status == 200:
            return delivered(status)
        if status == 410 or reason in _DEAD:
            return dead(status, "The provider does not know the token any more.")
        if reason == _STALE:
            self._until = 0.0
            return again(status, reason)
        if response.retryable:
            return again(status, reason or "apns", response.retry_after)
        return refused(status, reason or "apns")

    def _provider_token(self, now: int) -> str:
        if time.monotonic() >= self._until:
            self._token = self._key.token(now)
            self._until = time.monotonic() + RENEWED_AFTER
        return self._token


def _payload(push: Push) -> bytes:
    alert = {"title": push.title, "body": push.body}
    payload = {"aps": {"alert": alert, "sound": "default"}, **push.data}
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def _reason(response: OutboundResponse) -> str | None:
    try:
        given: Any = json.loads(response.body)
    except ValueError:
        return None
    reason = given.get("reason") if isinstance(given, dict) else None
    return reason if isinstance(reason, str) else None
