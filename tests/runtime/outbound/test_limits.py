"""Servers that are slow, endless, broken or hostile cost a bounded time and a bounded memory."""

import asyncio
import gzip
import socket

import pytest

from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import (
    ConnectionFailedError,
    InvalidResponseError,
    OutboundTimeoutError,
    ResponseTooLargeError,
)
from runtime.outbound.messages import OutboundRequest
from runtime.outbound_policy import Allowance, OutboundPolicy
from tests.runtime.outbound.servers import Answer, Names, Serve, Server
from tests.support.patience import ENOUGH

KIB = 1024


def ok(body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


async def endless(writer: asyncio.StreamWriter, _server: Server) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while True:
        writer.write(b"x" * 64 * KIB)
        await writer.drain()


async def endless_headers(writer: asyncio.StreamWriter, _server: Server) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-A: " + b"x" * 1000 + b"\r\n")
        await writer.drain()


async def endless_nothing(writer: asyncio.StreamWriter, _server: Server) -> None:
    """Empty deflate blocks: bytes that never decode to anything."""
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nConnection: close\r\n\r\n\x78\x9c"
    )
    while True:
        writer.write(b"\x00\x00\x00\xff\xff" * 10_000)
        await writer.drain()


async def trickle(writer: asyncio.StreamWriter, _server: Server) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def interim(writer: asyncio.StreamWriter, _server: Server) -> None:
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def silence(_writer: asyncio.StreamWriter, server: Server) -> None:
    await server.gone.wait()


async def bomb(writer: asyncio.StreamWriter, _server: Server) -> None:
    writer.write(ok(_bomb(), "Content-Encoding: gzip"))
    await writer.drain()


async def bomb_in_gzip(writer: asyncio.StreamWriter, _server: Server) -> None:
    writer.write(ok(gzip.compress(_bomb()), "Content-Encoding: gzip, gzip"))
    await writer.drain()


def _bomb() -> bytes:
    return gzip.compress(bytes(50 * KIB * KIB))


@pytest.mark.parametrize(
    "answer",
    [
        endless,
        endless_nothing,
        endless_headers,
        ok(b"x" * 300 * KIB),
        bomb,
        bomb_in_gzip,
        b"HTTP/1.1 200 OK\r\nX-A: " + b"x" * 200 * KIB + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: 1\r\n" * 20_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"x" * 70 * KIB + b"\r\n\r\n",
    ],
    ids=[
        "endless",
        "endless chunks",
        "endless headers",
        "long body",
        "gzip bomb",
        "gzip bomb in gzip",
        "long header",
        "many headers",
        "long header of many",
    ],
)
async def test_a_too_large_answer_is_aborted_early(
    serve: Serve, local: OutboundClient, answer: bytes | Answer
) -> None:
    server = await serve(answer)
    with pytest.raises(ResponseTooLargeError):
        await local.send(
            OutboundRequest(url=server.url, max_bytes=100 * KIB, timeout_seconds=ENOUGH)
        )
    await asyncio.wait_for(server.gone.wait(), ENOUGH)


@pytest.mark.long
@pytest.mark.parametrize("answer", [trickle, interim, silence])
async def test_a_too_slow_answer_is_aborted_in_time(
    serve: Serve, local: OutboundClient, answer: bytes | Answer
) -> None:
    server = await serve(answer)
    async with asyncio.timeout(ENOUGH):
        with pytest.raises(OutboundTimeoutError):
            await local.send(OutboundRequest(url=server.url, timeout_seconds=3))
    server.gone.set()


async def test_a_stall_ends_before_the_total_time(serve: Serve) -> None:
    server = await serve(silence)
    policy = OutboundPolicy(allowed=(Allowance.parse("127.0.0.0/8"),), read_seconds=0.3)
    async with OutboundClient(policy) as client:
        with pytest.raises(OutboundTimeoutError):
            await client.send(OutboundRequest(url=server.url, timeout_seconds=30))
    server.gone.set()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 11\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ok(b"short", length=100),
        ok(b"not gzip", "Content-Encoding: gzip"),
        ok(b"x", "Content-Encoding: gzip, gzip, gzip, gzip, gzip, gzip"),
    ],
)
async def test_a_broken_answer_is_reported_as_one(
    serve: Serve, local: OutboundClient, answer: bytes | Answer
) -> None:
    server = await serve(answer)
    with pytest.raises(InvalidResponseError):
        await local.send(OutboundRequest(url=server.url))


async def test_bytes_are_counted_on_the_wire_and_the_body_is_decoded(
    serve: Serve, local: OutboundClient
) -> None:
    body = b"hello " * 1000
    packed = gzip.compress(body)
    server = await serve(ok(packed, "Content-Encoding: gzip", "Content-Type: text/plain"))
    answer = await local.send(OutboundRequest(url=server.url + "/a?b=1"))
    assert answer.body == body
    assert answer.bytes_received == len(packed)
    assert answer.final_url == server.url + "/a?b=1"
    assert answer.headers["content-type"] == "text/plain"


async def test_a_header_beyond_ascii_is_sent(serve: Serve, local: OutboundClient) -> None:
    server = await serve(ok(b""))
    await local.send(OutboundRequest(url=server.url, headers={"X-Name": "Zoë"}))
    assert "x-name: zoë\r\n" in server.requests[0].lower()


async def test_an_error_status_is_an_answer(serve: Serve, local: OutboundClient) -> None:
    server = await serve(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
    answer = await local.send(OutboundRequest(url=server.url))
    assert (answer.status, answer.headers["retry-after"]) == (503, "7")


async def test_closed_and_filtered_ports_sound_the_same(names: Names) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    messages = set()
    names.answers = {"a.example": [["127.0.0.1"], ["240.0.0.1"]]}
    policy = OutboundPolicy.from_entries(["127.0.0.1", "240.0.0.1"])
    async with OutboundClient(policy, resolver=names) as client:
        for _ in range(2):
            request = OutboundRequest(url=f"http://a.example:{port}/", timeout_seconds=2)
            with pytest.raises(ConnectionFailedError) as caught:
                await client.send(request)
            messages.add(str(caught.value))
    assert len(messages) == 1


async def test_cancelling_closes_the_socket(serve: Serve, local: OutboundClient) -> None:
    server = await serve(trickle)
    call = asyncio.create_task(local.send(OutboundRequest(url=server.url)))
    await asyncio.wait_for(server.reached.wait(), ENOUGH)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(server.gone.wait(), ENOUGH)


async def test_nothing_is_remembered_between_calls(serve: Serve, local: OutboundClient) -> None:
    server = await serve(ok(b"", "Set-Cookie: a=secret; Path=/"))
    for _ in range(2):
        await local.send(OutboundRequest(url=server.url))
    assert len(server.requests) == 2
    assert "cookie" not in server.requests[1].lower()


async def test_failures_quote_no_secret(serve: Serve, local: OutboundClient) -> None:
    server = await serve(b"HTTP/1.1 nonsense\r\n\r\n")
    request = OutboundRequest(
        url=f"{server.url}/secret?token=secret", headers={"Authorization": "Bearer secret"}
    )
    with pytest.raises(InvalidResponseError) as caught:
        await local.send(request)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
