"""Asking a model: a server on loopback that streams, hangs, breaks off, and answers nonsense."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from activities.language_model.asking import LanguageModel, found_object
from models.workspace.model_settings import Endpoint
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from tests.support.endpoint import Script, Serve, never, reply
from tests.support.models import streamed
from tests.support.patience import ENOUGH

pytestmark = pytest.mark.takes(seconds=8)

PLAN = {"headline": "Plan", "nodes": [{"type": "page", "label": "Start"}]}


@pytest_asyncio.fixture
async def model() -> AsyncIterator[LanguageModel]:
    policy = OutboundPolicy.from_entries(["127.0.0.1"])
    async with OutboundClient(policy) as outbound:
        yield LanguageModel(outbound)


def at(url: str, *, key: str | None = "sk-planted", seconds: int = 20) -> Endpoint:
    return Endpoint(f"{url}v1", "small", seconds, key)


@pytest.mark.long
async def test_a_streamed_answer_is_read(model: LanguageModel, serve: Serve) -> None:
    server = await serve(streamed(f"Here it is:\n```json\n{json.dumps(PLAN)}\n```\nEnjoy."))
    assert await model.ask(at(server.url), "You plan.", "A bakery") == PLAN
    (request,) = server.requests
    assert request.line.startswith("POST /v1/chat/completions ")
    assert request.headers["authorization"] == "Bearer sk-planted"
    asked = request.json()
    assert (asked["model"], asked["stream"]) == ("small", True)
    said = json.dumps(asked["messages"])
    assert "You plan." in said
    assert "A bakery" in said


async def test_without_a_key_none_is_sent(model: LanguageModel, serve: Serve) -> None:
    server = await serve(streamed(json.dumps(PLAN)))
    assert await model.ask(at(server.url, key=None), "You plan.", "A bakery") == PLAN
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "answer",
    [
        streamed("I would rather write a poem."),
        streamed('{"headline": "cut of'),
        streamed("[1, 2, 3]"),
        streamed("{" * 5_000),
        reply(200, {"choices": None}),
        reply(200, "data: {nonsense\n\n", type_="text/event-stream"),
        reply(200, b"\xff\xfe\x00", type_="text/event-stream"),
        reply(200, "<html>Welcome</html>", type_="text/html"),
        reply(401, {"error": {"message": "no such key sk-planted"}}),
        reply(429, {"error": {}}, retry_after="60"),
        reply(500, "broken"),
        reply(200, "x" * 3_000_000, type_="text/event-stream"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{",
        b"not http at all\r\n\r\n",
    ],
    ids=range(14),
)
async def test_nonsense_is_no_answer(model: LanguageModel, serve: Serve, answer: Any) -> None:
    server = await serve(answer)
    assert await model.ask(at(server.url), "You plan.", "A bakery") is None
    assert len(server.requests) == 1


async def test_a_model_that_hangs_is_left(model: LanguageModel, serve: Serve) -> None:
    server = await serve(streamed("{}"), never)
    await model.ask(at(server.url), "You plan.", "A bakery")  # imports the client
    async with asyncio.timeout(ENOUGH):
        assert await model.ask(at(server.url, seconds=1), "You plan.", "A bakery") is None
    await asyncio.wait_for(server.left.wait(), ENOUGH)


def endless(piece: bytes, pause: float) -> Script:
    """A stream that does not end."""

    async def stream(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return stream


@pytest.mark.parametrize(
    ("piece", "pause"), [(b": still here\n\n" * 8_000, 0), (b":\n\n", 0.05)], ids=["flood", "drip"]
)
async def test_a_stream_that_does_not_end_is_left(
    model: LanguageModel, serve: Serve, piece: bytes, pause: float
) -> None:
    server = await serve(endless(piece, pause))
    # What floods is left long before its time; what drips, when its time is over.
    seconds = 1 if pause else 600
    async with asyncio.timeout(ENOUGH):
        assert await model.ask(at(server.url, seconds=seconds), "You plan.", "A bakery") is None


async def test_no_model_is_asked_at_a_private_address(serve: Serve) -> None:
    server = await serve(streamed(json.dumps(PLAN)))
    async with OutboundClient(OutboundPolicy()) as outbound:
        model = LanguageModel(outbound)
        assert await model.ask(at(server.url), "You plan.", "A bakery") is None
    assert server.requests == []


async def test_a_redirect_does_not_carry_the_key_elsewhere(
    model: LanguageModel, serve: Serve
) -> None:
    other = await serve(streamed(json.dumps(PLAN)))
    server = await serve(reply(307, b"", location=f"{other.url}v1/chat/completions"))
    await model.ask(at(server.url), "You plan.", "A bakery")
    assert all("authorization" not in one.headers for one in other.requests)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure! {not json} {"a": {"b": 2}} done', {"a": {"b": 2}}),
        ("nothing", None),
        ("{" * 100, None),
    ],
)
def test_an_object_is_found_in_words(text: str, found: Any) -> None:
    assert found_object(text) == found
