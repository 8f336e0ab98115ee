"""Web Push against a push service on loopback: what it gets, and what its answers mean."""

import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from joserfc import jwt
from joserfc.jwk import ECKey

from activities.deliveries.push import Push, Subscription, WebPush, encrypted, push_content
from models.messages.deliveries.rules import Answer
from models.messages.notifications.queries import Notification
from models.messages.push_devices import PushProvider
from runtime import base64url
from runtime.clock import utc_now
from runtime.configuration.push_keys import VapidKey
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundBlockedError
from runtime.outbound_policy import OutboundPolicy
from tests.support.browsers import VAPID, Browser
from tests.support.endpoint import Serve, reply


@pytest_asyncio.fixture
async def web_push() -> AsyncIterator[WebPush]:
    policy = OutboundPolicy.from_entries(("127.0.0.0/8",))
    async with OutboundClient(policy) as outbound:
        yield WebPush(outbound, VAPID)


def push(token: str, **parts: Any) -> Push:
    facts = {"title": "Tea", "body": "Ünd biscuits", "data": {"kind": "mention"}, **parts}
    return Push(uuid4(), PushProvider.WEBPUSH, token, **facts)


async def test_the_browser_reads_what_was_sent(serve: Serve, web_push: WebPush) -> None:
    endpoint = await serve(reply(201))
    browser = Browser(f"{endpoint.url}send/abc")
    message = push(browser.token)
    assert await web_push.push(message) == Answer(end="delivered", status=201)  # type: ignore[arg-type]
    (received,) = endpoint.requests
    assert received.line == "POST /send/abc HTTP/1.1"
    assert browser.read(received.content) == {
        "title": "Tea",
        "body": "Ünd biscuits",
        "data": {"kind": "mention"},
    }
    headers = received.headers
    assert headers["content-encoding"] == "aes128gcm"
    assert headers["ttl"] == "86400"
    assert headers["topic"] == base64url.encode(message.id.bytes)
    scheme, _, parameters = headers["authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in parameters.split(","))
    assert (scheme, parts["k"]) == ("vapid", VAPID.public)
    point = base64url.decode(parts["k"]) or b""
    coordinates = {"x": base64url.encode(point[1:33]), "y": base64url.encode(point[33:])}
    key = ECKey.import_key({"kty": "EC", "crv": "P-256", **coordinates})
    claims = jwt.decode(parts["t"], key, algorithms=["ES256"]).claims
    assert claims["aud"] == endpoint.url.rstrip("/")
    assert claims["sub"] == VAPID.subject
    assert 0 < claims["exp"] - time.time() <= 24 * 3600


@pytest.mark.parametrize(
    ("status", "end", "code"),
    [
        (200, "delivered", None),
        (202, "delivered", None),
        (404, "undeliverable", "dead_token"),
        (410, "undeliverable", "dead_token"),
        (400, "failed", "push_service"),
        (401, "failed", "push_service"),
        (403, "failed", "push_service"),
        (413, "failed", "push_service"),
        (429, None, "push_service"),
        (500, None, "push_service"),
        (503, None, "push_service"),
    ],
)
async def test_answers_mean(
    serve: Serve, web_push: WebPush, status: int, end: str | None, code: str | None
) -> None:
    endpoint = await serve(reply(status, "reasons", Retry_After="7"))
    answer = await web_push.push(push(Browser(endpoint.url).token))
    assert (answer.end, answer.code, answer.status) == (end, code, status)
    assert answer.retry_after == (7.0 if end is None else None)
    assert endpoint.url not in repr(answer)


async def test_older_keys_serve_those_who_subscribed_with_them(serve: Serve) -> None:
    newer = VapidKey.parse(base64url.encode(bytes(range(2, 34))), VAPID.subject)
    policy = OutboundPolicy.from_entries(("127.0.0.0/8",))
    endpoint = await serve(reply(403), reply(201), reply(201), reply(401), reply(403))
    async with OutboundClient(policy) as outbound:
        web_push = WebPush(outbound, newer, VAPID)
        ends = [(await web_push.push(push(Browser(endpoint.url).token))).end for _ in range(3)]
    assert ends == ["delivered", "delivered", "failed"]
    keys = [one.headers["authorization"].rpartition("k=")[2] for one in endpoint.requests]
    assert keys == [newer.public, VAPID.public, newer.public, newer.public, VAPID.public]


@pytest.mark.parametrize(
    "token",
    [
        "a" * 40,
        "[]" * 10,
        '{"endpoint": "https://example.test/"}',
        '{"endpoint": "ftp://e.test/", "keys": {"p256dh": "BA", "auth": "AA"}}',
        Browser("https://example.test/").token.replace('"auth": "', '"auth": "A'),
        Browser("https://example.test/").token.replace('"p256dh": "B', '"p256dh": "A'),
    ],
)
async def test_a_token_that_is_no_subscription_is_dead(web_push: WebPush, token: str) -> None:
    answer = await web_push.push(push(token))
    assert (answer.end, answer.code) == ("undeliverable", "dead_token")


async def test_no_endpoint_leads_into_our_own_network(serve: Serve) -> None:
    endpoint = await serve(reply(201))
    async with OutboundClient(OutboundPolicy()) as outbound:
        with pytest.raises(OutboundBlockedError):
            await WebPush(outbound, VAPID).push(push(Browser(endpoint.url).token))
    assert endpoint.requests == []


def test_a_push_says_no_more_than_providers_take() -> None:
    notification = Notification.model_construct(
        id=uuid4(),
        workspace_id=uuid4(),
        user_id=uuid4(),
        kind="comment",
        title="ü" * 10_000,
        body='"' * 100_000,
        record_id=uuid4(),
        data={},
        created_at=utc_now(),
    )
    title, body, data = push_content(notification)
    assert title.endswith("ü…")
    assert len(title.encode()) <= 400
    assert len(body) < 2_000
    assert data == {
        "kind": "comment",
        "notificationId": str(notification.id),
        "workspaceId": str(notification.workspace_id),
        "recordId": str(notification.record_id),
    }


def test_each_message_has_a_key_of_its_own() -> None:
    browser = Browser("https://example.test/")
    subscription = Subscription.parse(browser.token)
    assert subscription is not None
    sealed = {encrypted(b"{}", subscription) for _ in range(3)}
    assert len({one[21:86] for one in sealed}) == 3
    assert all(browser.read(one) == {} for one in sealed)
