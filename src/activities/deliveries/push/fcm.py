"""Firebase Cloud Messaging by its HTTP v1 interface, with the access token of a service account."""

import asyncio
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
from runtime.outbound.errors import InvalidBodyError
from runtime.outbound.messages import OutboundRequest, OutboundResponse

if TYPE_CHECKING:
    from runtime.push_keys import FcmAccount

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SECONDS = 30
ASSERTION_SECONDS = 3_600
MARGIN_SECONDS = 120
"""So long before its end an access token is not used any more."""
MAX_ANSWER_BYTES = 64 * 1024

_DEAD = frozenset({"UNREGISTERED", "SENDER_ID_MISMATCH"})
"""Codes of errors after which a token is to be forgotten."""


class NoTokenError(Exception):
    """The token endpoint gave no access token."""

    retryable = False

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.code)
        self.answer = answer


class Fcm(Pusher):
    """Pushes to the devices of one Firebase project."""

    def __init__(self, outbound: OutboundClient, account: "FcmAccount", url: str) -> None:
        self._outbound = outbound
        self._account = account
        self._url = f"{url}/v1/projects/{quote(account.project, safe='')}/messages:send"
        self._lock = asyncio.Lock()
        self._token = ""
        self._until = 0.0

    @override
    async def push(self, push: Push) -> Answer:
        try:
            token = await self._access_token()
        except NoTokenError as error:
            return error.answer
        response = await self._outbound.send(
            OutboundRequest(
                method="POST",
                url=self._url,
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                body={"message": _message(push)},
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        return self._read(response)

    def _read(self, response: OutboundResponse) -> Answer:
        status, code = response.status, _code(response)
        if status == 200:
            return delivered(status)
        if code in _DEAD or (status == 404 and code is None) or _names_token(response):
            return dead(status, "The provider does not know the token any more.")
        if status == 401:
            self._until = 0.0
            return again(status, code or "UNAUTHENTICATED")
        if response.retryable:
            return again(status, code or "UNAVAILABLE", response.retry_after)
        return refused(status, code or "fcm")

    async def _access_token(self) -> str:
        """A token that holds for some minutes at least; one that many pushes share."""
        async with self._lock:
            if time.monotonic() >= self._until:
                await self._renew()
            return self._token

    async def _renew(self) -> None:
        now = int(utc_now().timestamp())
        assertion = self._account.assertion(SCOPE, now, ASSERTION_SECONDS)
        response = await self._outbound.send(
            OutboundRequest(
                method="POST",
                url=self._account.token_url,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                body={"grant_type": GRANT, "assertion": assertion},
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        given = _json(response)
        token, seconds = given.get("access_token"), given.get("expires_in", 0)
        if response.status != 200 or not isinstance(token, str):
            wait = again if response.retryable or response.status == 200 else refused
            raise NoTokenError(wait(response.status, "no_access_token"))
        self._token = token
        lasts = seconds if isinstance(seconds, int) else 0
        self._until = time.monotonic() + max(0, lasts - MARGIN_SECONDS)


def _message(push: Push) -> dict[str, Any]:
    """The message, in the words of the interface's reference."""
    return {
        "token": push.token,
        "notification": {"title": push.title, "body": push.body},
        "data": {**push.data, "deliveryId": str(push.id)},
        # A repetition takes the place of what the device has got.
        "android": {"ttl": f"{LIFETIME_SECONDS}s", "notification": {"tag": str(push.id)}},
        "apns": {"headers": {"apns-collapse-id": str(push.id)}},
    }


def _json(response: OutboundResponse) -> dict[str, Any]:
    try:
        given = response.json()
    except InvalidBodyError:
        return {}
    return given if isinstance(given, dict) else {}


def _details(response: OutboundResponse) -> list[dict[str, Any]]:
    error = _json(response).get("error")
    details = error.get("details", []) if isinstance(error, dict) else []
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _code(response: OutboundResponse) -> str | None:
    """The code of FCM, else the status of Google's interfaces in general."""
    for detail in _details(response):
        if isinstance(detail.get("errorCode"), str):
            return str(detail["errorCode"])
    error = _json(response).get("error")
    status = error.get("status") if isinstance(error, dict) else None
    return status if isinstance(status, str) and status != "NOT_FOUND" else None


def _names_token(response: OutboundResponse) -> bool:
    """True when an invalid argument is about the token."""
    violations = [
        one
        for detail in _details(response)
        for one in detail.get("fieldViolations") or ()
        if isinstance(one, dict)
    ]
    return response.status == 400 and any(one.get("field") == "message.token" for one in violations)
