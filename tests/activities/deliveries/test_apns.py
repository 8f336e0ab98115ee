"""APNs against an HTTP/2 stand-in that answers as its documentation says."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from joserfc import jwt
from joserfc.jwk import ECKey

from activities.deliveries.push import Apns, Push
from models.messages.push_devices import PushProvider
from runtime.configuration.push_keys import ApnsKey
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from tests.support.http2_endpoint import http2_endpoint

KEY = ECKey.generate_key("P-256")


@pytest.fixture
def key(tmp_path: Path) -> ApnsKey:
    file = tmp_path / "AuthKey_K1.p8"
    file.write_bytes(KEY.as_pem(private=True))
    return ApnsKey.read(file, "K1", "TEAM", "com.example.app")


@pytest_asyncio.fixture
async def outbound() -> AsyncIterator[OutboundClient]:
    policy = OutboundPolicy.from_entries(("127.0.0.0/8",))
    async with OutboundClient(policy, http2=True) as outbound:
        yield outbound


def push(token: str = "aa00") -> Push:  # noqa: S107
    return Push(uuid4(), PushProvider.APNS, token, "Tea", "Now", {"kind": "mention"})


def reason(text: str) -> bytes:
    return json.dumps({"reason": text}).encode()


async def test_pushes_share_a_connection_and_a_token(
    outbound: OutboundClient, key: ApnsKey
) -> None:
    async with http2_endpoint((200, b"")) as endpoint:
        pusher, one = Apns(outbound, key, endpoint.url), push("a/b c")
        for message in (one, push(), push()):
            assert (await pusher.push(message)).end == "delivered"
        assert endpoint.connections == 1
        received = endpoint.requests[0]
        assert received.path == "/3/device/a%2Fb%20c"
        headers = received.headers
        assert headers[":method"] == "POST"
        assert headers["apns-id"] == str(one.id)
        assert headers["apns-topic"] == "com.example.app"
        assert headers["apns-push-type"] == "alert"
        assert 0 < int(headers["apns-expiration"]) - time.time() <= 86_401
        assert json.loads(received.body) == {
            "aps": {"alert": {"title": "Tea", "body": "Now"}, "sound": "default"},
            "kind": "mention",
        }
        scheme, _, text = headers["authorization"].partition(" ")
        token = jwt.decode(text, KEY, algorithms=["ES256"])
        assert (scheme, token.header["kid"], token.claims["iss"]) == ("bearer", "K1", "TEAM")
        assert len({one.headers["authorization"] for one in endpoint.requests}) == 1


@pytest.mark.parametrize(
    ("status", "body", "end", "code"),
    [
        (410, reason("Unregistered"), "undeliverable", "dead_token"),
        (400, reason("BadDeviceToken"), "undeliverable", "dead_token"),
        (400, reason("DeviceTokenNotForTopic"), "undeliverable", "dead_token"),
        (400, reason("PayloadEmpty"), "failed", "PayloadEmpty"),
        (403, reason("InvalidProviderToken"), "failed", "InvalidProviderToken"),
        (413, reason("PayloadTooLarge"), "failed", "PayloadTooLarge"),
        (429, reason("TooManyRequests"), None, "TooManyRequests"),
        (500, reason("InternalServerError"), None, "InternalServerError"),
        (503, reason("ServiceUnavailable"), None, "ServiceUnavailable"),
        (400, b"no json", "failed", "apns"),
        (503, b"[]", None, "apns"),
    ],
)
async def test_answers_mean(
    outbound: OutboundClient, key: ApnsKey, status: int, body: bytes, end: Any, code: str
) -> None:
    async with http2_endpoint((status, body, {"retry-after": "9"})) as endpoint:
        answer = await Apns(outbound, key, endpoint.url).push(push())
    assert (answer.end, answer.code, answer.status) == (end, code, status)
    assert answer.retry_after == (9.0 if end is None else None)
    assert "aa00" not in repr(answer)


async def test_a_token_of_ours_that_expired_is_made_anew(
    outbound: OutboundClient, key: ApnsKey
) -> None:
    expired = (403, reason("ExpiredProviderToken"))
    async with http2_endpoint(expired, (200, b"")) as endpoint:
        pusher = Apns(outbound, key, endpoint.url)
        assert [(await pusher.push(push())).end for _ in range(2)] == [None, "delivered"]
        first, second = (one.headers["authorization"] for one in endpoint.requests)
        assert first != second
