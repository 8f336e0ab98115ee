"""Firebase Cloud Messaging against a stand-in that answers as its reference says."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

import pytest
import pytest_asyncio
from joserfc import jwt
from joserfc.jwk import RSAKey

from activities.deliveries.push import Fcm, Push
from models.messages.push_devices import PushProvider
from runtime.configuration.push_keys import FcmAccount
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from tests.support.endpoint import Endpoint, Serve, reply

KEY = RSAKey.generate_key(2048, {"kid": "k1"})
GIVEN = reply(200, {"access_token": "ya29.access", "expires_in": 3600, "token_type": "Bearer"})
SENT = reply(200, {"name": "projects/p/messages/1"})


def error(status: int, name: str, *details: Any, **headers: str) -> bytes:
    """An error in the shape of Google's interfaces."""
    said = {"code": status, "message": "No.", "status": name, "details": list(details)}
    return reply(status, {"error": said}, **headers)


def of_fcm(code: str) -> Any:
    return {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}


def about(field: str) -> Any:
    violations = [{"field": field, "description": "Invalid"}]
    return {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}


@pytest_asyncio.fixture
async def outbound() -> AsyncIterator[OutboundClient]:
    async with OutboundClient(OutboundPolicy.from_entries(("127.0.0.0/8",))) as outbound:
        yield outbound


def account(path: Path, token_url: str) -> FcmAccount:
    """As the console's file says it."""
    file = path / "account.json"
    given = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "k1",
        "private_key": KEY.as_pem(private=True).decode(),
        "client_email": "sender@p.iam.gserviceaccount.com",
        "token_uri": token_url,
    }
    file.write_text(json.dumps(given), "utf-8")
    return FcmAccount.read(file)


@pytest.fixture
def fcm(outbound: OutboundClient, tmp_path: Path) -> Any:
    def made(tokens: Endpoint, messages: Endpoint) -> Fcm:
        return Fcm(outbound, account(tmp_path, f"{tokens.url}token"), messages.url.rstrip("/"))

    return made


def push() -> Push:
    return Push(uuid4(), PushProvider.FCM, "device:token", "Tea", "Now", {"kind": "mention"})


async def test_a_message_goes_with_an_access_token_that_many_share(serve: Serve, fcm: Any) -> None:
    tokens, messages = await serve(GIVEN), await serve(SENT)
    one, pusher = push(), fcm(tokens, messages)
    for _ in range(3):
        assert (await pusher.push(one)).end == "delivered"
    (asked,) = tokens.requests
    form = parse_qs(asked.body)
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    token = jwt.decode(form["assertion"][0], KEY, algorithms=["RS256"])
    assert token.header["kid"] == "k1"
    assert token.claims["iss"] == "sender@p.iam.gserviceaccount.com"
    assert token.claims["aud"] == f"{tokens.url}token"
    assert token.claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
    assert len(messages.requests) == 3
    sent = messages.requests[0]
    assert sent.line == "POST /v1/projects/p/messages:send HTTP/1.1"
    assert sent.headers["authorization"] == "Bearer ya29.access"
    message = sent.json()["message"]
    assert message["token"] == "device:token"
    assert message["notification"] == {"title": "Tea", "body": "Now"}
    assert message["data"] == {"kind": "mention", "deliveryId": str(one.id)}


@pytest.mark.parametrize(
    ("answer", "end", "code"),
    [
        (error(404, "NOT_FOUND", of_fcm("UNREGISTERED")), "undeliverable", "dead_token"),
        (error(404, "NOT_FOUND"), "undeliverable", "dead_token"),
        (
            error(403, "PERMISSION_DENIED", of_fcm("SENDER_ID_MISMATCH")),
            "undeliverable",
            "dead_token",
        ),
        (
            error(400, "INVALID_ARGUMENT", of_fcm("INVALID_ARGUMENT"), about("message.token")),
            "undeliverable",
            "dead_token",
        ),
        (
            error(400, "INVALID_ARGUMENT", of_fcm("INVALID_ARGUMENT"), about("message.data")),
            "failed",
            "INVALID_ARGUMENT",
        ),
        (error(403, "PERMISSION_DENIED"), "failed", "PERMISSION_DENIED"),
        (error(429, "RESOURCE_EXHAUSTED", of_fcm("QUOTA_EXCEEDED")), None, "QUOTA_EXCEEDED"),
        (error(500, "INTERNAL", of_fcm("INTERNAL")), None, "INTERNAL"),
        (error(503, "UNAVAILABLE", of_fcm("UNAVAILABLE")), None, "UNAVAILABLE"),
        (reply(502, "<html>", type_="text/html"), None, "UNAVAILABLE"),
        (reply(500, "{", type_="application/json"), None, "UNAVAILABLE"),
        (reply(400, [], type_="application/json"), "failed", "fcm"),
    ],
)
async def test_answers_mean(
    serve: Serve, fcm: Any, answer: bytes, end: str | None, code: str
) -> None:
    found = await fcm(await serve(GIVEN), await serve(answer)).push(push())
    assert (found.end, found.code) == (end, code)
    assert "device:token" not in repr(found)


async def test_it_waits_as_long_as_it_is_asked_to(serve: Serve, fcm: Any) -> None:
    busy = error(429, "RESOURCE_EXHAUSTED", of_fcm("QUOTA_EXCEEDED"), Retry_After="60")
    found = await fcm(await serve(GIVEN), await serve(busy)).push(push())
    assert found.retry_after == 60


async def test_an_access_token_that_is_refused_is_asked_for_anew(serve: Serve, fcm: Any) -> None:
    tokens = await serve(GIVEN, reply(200, {"access_token": "ya29.new", "expires_in": 3600}))
    messages = await serve(error(401, "UNAUTHENTICATED"), SENT)
    pusher = fcm(tokens, messages)
    assert [(await pusher.push(push())).end for _ in range(2)] == [None, "delivered"]
    used = [one.headers["authorization"] for one in messages.requests]
    assert used == ["Bearer ya29.access", "Bearer ya29.new"]


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (reply(400, {"error": "invalid_grant"}), "failed"),
        (reply(401, {"error": "invalid_client"}), "failed"),
        (reply(503, ""), None),
        (reply(200, {"expires_in": 3600}), None),
        (reply(200, "<html>", type_="text/html"), None),
    ],
)
async def test_without_an_access_token_nothing_is_sent(
    serve: Serve, fcm: Any, answer: bytes, end: str | None
) -> None:
    messages = await serve(SENT)
    found = await fcm(await serve(answer), messages).push(push())
    assert (found.end, found.code) == (end, "no_access_token")
    assert messages.requests == []
