"""Pushes by APNs, FCM and Web Push: one adapter for each provider that carries them."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

from models.core.base import Id
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.messages.notifications.queries import NotificationRow
from models.messages.push_devices import PushProvider
from runtime import base64url
from runtime.clock import utc_now
from runtime.configuration.sections import PushSettings
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import InvalidBodyError
from runtime.outbound.messages import OutboundRequest, OutboundResponse

if TYPE_CHECKING:
    from runtime.configuration.push_keys import ApnsKey, FcmAccount, VapidKey


TITLE_BYTES, BODY_BYTES = 400, 1_600
"""The most that is shown: every provider takes some 4 KB, of which JSON may use several for one."""
LIFETIME_SECONDS = 24 * 3_600
"""The time a provider keeps a push for a device that is off."""

DEAD_TOKEN = "dead_token"  # noqa: S105  # a code
"""The code of an answer for a token that reaches no device any more."""


@dataclass(frozen=True, slots=True)
class Push:
    """One push to one device; `id` is the same at every attempt."""

    id: Id
    provider: PushProvider
    token: str = field(repr=False)
    title: str
    body: str
    data: Mapping[str, str]


class Pusher(Protocol):
    """Carries pushes to the devices of one provider."""

    async def push(self, push: Push) -> Answer:
        """Hand a push to the provider. Raises OutboundError when there is no answer."""


def push_content(notification: NotificationRow) -> tuple[str, str, dict[str, str]]:
    """The title, the body and the data of a notification as devices get them."""
    ids = {
        "notificationId": notification.id,
        "workspaceId": notification.workspace_id,
        "itemId": notification.item_id,
        "recordId": notification.record_id,
        "runId": notification.run_id,
    }
    data = {name: str(value) for name, value in ids.items() if value is not None}
    title, body = _cut(notification.title, TITLE_BYTES), _cut(notification.body, BODY_BYTES)
    return title, body, {"kind": notification.kind, **data}


def delivered(status: int) -> Answer:
    """The provider took it."""
    return Answer(end=DeliveryStatus.DELIVERED, status=status)


def dead(status: int | None, reason: str) -> Answer:
    """The token reaches no device any more."""
    return Answer(end=DeliveryStatus.UNDELIVERABLE, status=status, code=DEAD_TOKEN, message=reason)


def again(status: int, code: str, retry_after: float | None = None) -> Answer:
    """The provider does not take it now."""
    message = f"The provider returned {status}."
    return Answer(end=None, status=status, code=code, message=message, retry_after=retry_after)


def refused(status: int, code: str) -> Answer:
    """The provider will never take it as it is."""
    message = f"The provider returned {status} ({code})."
    return Answer(end=DeliveryStatus.FAILED, status=status, code=code, message=message)


def _cut(text: str, most: int) -> str:
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    return encoded[: most - 3].decode(errors="ignore") + "…"


SECONDS = 30

APNS_RENEWED_AFTER = 40 * 60
"""Seconds; APNs refuses tokens older than an hour, and teams that renew more often than in 20
minutes."""
MAX_ANSWER_BYTES = 64 * 1024

_APNS_DEAD = frozenset({"BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered", "ExpiredToken"})
"""Reasons after which a token is to be forgotten."""

_APNS_STALE = "ExpiredProviderToken"


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
                body=_apns_payload(push),
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        return self._read(response)

    def _read(self, response: OutboundResponse) -> Answer:
        status, reason = response.status, _apns_reason(response)
        if status == 200:
            return delivered(status)
        if status == 410 or reason in _APNS_DEAD:
            return dead(status, "The provider no longer knows the token.")
        if reason == _APNS_STALE:
            self._until = 0.0
            return again(status, reason)
        if response.retryable:
            return again(status, reason or "apns", response.retry_after)
        return refused(status, reason or "apns")

    def _provider_token(self, now: int) -> str:
        if time.monotonic() >= self._until:
            self._token = self._key.token(now)
            self._until = time.monotonic() + APNS_RENEWED_AFTER
        return self._token


def _apns_payload(push: Push) -> bytes:
    alert = {"title": push.title, "body": push.body}
    payload = {"aps": {"alert": alert, "sound": "default"}, **push.data}
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def _apns_reason(response: OutboundResponse) -> str | None:
    try:
        given: Any = json.loads(response.body)
    except ValueError:
        return None
    reason = given.get("reason") if isinstance(given, dict) else None
    return reason if isinstance(reason, str) else None


FCM_SCOPE = "https://www.googleapis.com/auth/firebase.messaging"

FCM_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

FCM_ASSERTION_SECONDS = 3_600

FCM_MARGIN_SECONDS = 120
"""So long before its end an access token is not used any more."""

_FCM_DEAD = frozenset({"UNREGISTERED", "SENDER_ID_MISMATCH"})
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
                body={"message": _fcm_message(push)},
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        return self._read(response)

    def _read(self, response: OutboundResponse) -> Answer:
        status, code = response.status, _fcm_code(response)
        if status == 200:
            return delivered(status)
        if code in _FCM_DEAD or (status == 404 and code is None) or _names_token(response):
            return dead(status, "The provider no longer knows the token.")
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
        assertion = self._account.assertion(FCM_SCOPE, now, FCM_ASSERTION_SECONDS)
        response = await self._outbound.send(
            OutboundRequest(
                method="POST",
                url=self._account.token_url,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                body={"grant_type": FCM_GRANT, "assertion": assertion},
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        given = _fcm_answer(response)
        token, seconds = given.get("access_token"), given.get("expires_in", 0)
        if response.status != 200 or not isinstance(token, str):
            wait = again if response.retryable or response.status == 200 else refused
            raise NoTokenError(wait(response.status, "no_access_token"))
        self._token = token
        lasts = seconds if isinstance(seconds, int) else 0
        self._until = time.monotonic() + max(0, lasts - FCM_MARGIN_SECONDS)


def _fcm_message(push: Push) -> dict[str, Any]:
    """The message, in the words of the interface's reference."""
    return {
        "token": push.token,
        "notification": {"title": push.title, "body": push.body},
        "data": {**push.data, "deliveryId": str(push.id)},
        # A repetition takes the place of what the device has got.
        "android": {"ttl": f"{LIFETIME_SECONDS}s", "notification": {"tag": str(push.id)}},
        "apns": {"headers": {"apns-collapse-id": str(push.id)}},
    }


def _fcm_answer(response: OutboundResponse) -> dict[str, Any]:
    try:
        given = response.json()
    except InvalidBodyError:
        return {}
    return given if isinstance(given, dict) else {}


def _fcm_details(response: OutboundResponse) -> list[dict[str, Any]]:
    error = _fcm_answer(response).get("error")
    details = error.get("details", []) if isinstance(error, dict) else []
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _fcm_code(response: OutboundResponse) -> str | None:
    """The code of FCM, else the status of Google's interfaces in general."""
    for detail in _fcm_details(response):
        if isinstance(detail.get("errorCode"), str):
            return str(detail["errorCode"])
    error = _fcm_answer(response).get("error")
    status = error.get("status") if isinstance(error, dict) else None
    return status if isinstance(status, str) and status != "NOT_FOUND" else None


def _names_token(response: OutboundResponse) -> bool:
    """True when an invalid argument is about the token."""
    violations = [
        one
        for detail in _fcm_details(response)
        for one in detail.get("fieldViolations") or ()
        if isinstance(one, dict)
    ]
    return response.status == 400 and any(one.get("field") == "message.token" for one in violations)


VAPID_TOKEN_SECONDS = 12 * 3_600
"""RFC 8292 allows a day."""

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
        """From `JSON.stringify(subscription)`; None for anything else."""
        try:
            given: Any = json.loads(text)
            keys = given["keys"]
            point, secret = _decoded(keys["p256dh"]), _decoded(keys["auth"])
            endpoint = given["endpoint"]
            ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        whole = len(point) == _POINT_BYTES and len(secret) == _SECRET_BYTES
        if not whole or not isinstance(endpoint, str) or not endpoint.startswith("http"):
            return None
        return cls(endpoint, point, secret)


class WebPush(Pusher):
    """Pushes to browsers, by the push service that each has chosen.

    A subscription accepts only pushes signed by the key it was made with (RFC 8292, 4.2); older
    keys serve browsers that have not subscribed again.
    """

    def __init__(self, outbound: OutboundClient, *keys: "VapidKey") -> None:
        self._outbound = outbound
        self._keys = keys

    @override
    async def push(self, push: Push) -> Answer:
        subscription = Subscription.parse(push.token)
        if subscription is None:
            return dead(None, "The token is not a Web Push subscription.")
        for key in self._keys:
            response = await self._send(push, subscription, key)
            if response.status not in _OTHER_KEY:
                break
        match response.status:
            case status if 200 <= status < 300:
                return delivered(status)
            case 404 | 410 as status:
                return dead(status, "The subscription has expired.")
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
                headers=_web_push_headers(push, subscription.endpoint, key),
                body=encrypted(_web_push_payload(push), subscription),
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )


def _web_push_headers(push: Push, endpoint: str, key: "VapidKey") -> Mapping[str, str]:
    url = urlsplit(endpoint)
    expires = int(utc_now().timestamp()) + VAPID_TOKEN_SECONDS
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


def _web_push_payload(push: Push) -> bytes:
    shown = {"title": push.title, "body": push.body, "data": dict(push.data)}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()


def _decoded(text: object) -> bytes:
    raw = base64url.decode(text.rstrip("=")) if isinstance(text, str) else None
    if raw is None:
        raise ValueError("not base64url")
    return raw


def pushers_of(
    settings: PushSettings, outbound: OutboundClient, http2: OutboundClient
) -> dict[PushProvider, Pusher]:
    """The carriers of pushes; APNs takes them by `http2` alone."""
    pushers: dict[PushProvider, Pusher] = {}
    if settings.vapid_keys:
        pushers[PushProvider.WEBPUSH] = WebPush(outbound, *settings.vapid_keys)
    if settings.fcm is not None:
        pushers[PushProvider.FCM] = Fcm(outbound, settings.fcm, settings.fcm_url)
    if settings.apns is not None:
        pushers[PushProvider.APNS] = Apns(http2, settings.apns, settings.apns_url)
    return pushers
