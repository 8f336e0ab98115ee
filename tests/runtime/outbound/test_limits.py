"""Servers that are slow, endless, broken or hostile cost a bounded time and a bounded memory."""

import asyncio
import gzip
import socket
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import (
    ConnectionFailedError,
    InvalidResponseError,
    OutboundTimeoutError,
    ResponseTooLargeError,
    UnknownCodingError,
)
from runtime.outbound.messages import Inflater, OutboundRequest
from runtime.outbound_policy import Allowance, OutboundPolicy
from tests.runtime.outbound.servers import Answer, Names, Serve, Server
from tests.support.patience import ENOUGH

KIB = 1024


def _gzipped(body: bytes) -> bytes:
    # The moment is left out: bodies are names of tests, and those are the same in each process.
    return gzip.compress(body, mtime=0)


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
    writer.write(ok(_gzipped(_bomb()), "Content-Encoding: gzip, gzip"))
    await writer.drain()


def _bomb() -> bytes:
    return _gzipped(bytes(50 * KIB * KIB))


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
        ok(_gzipped(b"rows " * 9)[:-9], "Content-Encoding: gzip"),
        ok(_gzipped(b"rows")[:-1], "Content-Encoding: gzip"),
        ok(_gzipped(b"rows ") + _gzipped(b"more")[:-4], "Content-Encoding: gzip"),
        ok(zlib.compress(b"rows " * 9)[:-5], "Content-Encoding: deflate"),
        ok(_gzipped(_gzipped(b"rows")[:-3]), "Content-Encoding: gzip, gzip"),
    ],
)
async def test_a_broken_answer_is_reported_as_one(
    serve: Serve, local: OutboundClient, answer: bytes | Answer
) -> None:
    server = await serve(answer)
    with pytest.raises(InvalidResponseError):
        await local.send(OutboundRequest(url=server.url))


@pytest.mark.parametrize(
    "coding", ["br", "zstd", "ZSTD", "compress", "gzip, br", "br, gzip", "dcb"]
)
async def test_a_body_that_is_compressed_in_another_way_is_no_text(
    serve: Serve, local: OutboundClient, coding: str
) -> None:
    server = await serve(ok(b"\x1b\x06{}", f"Content-Encoding: {coding}", "X-Id: 7"))
    with pytest.raises(UnknownCodingError, match="compressed the response") as raised:
        await local.send(OutboundRequest(url=server.url))
    assert raised.value.head is not None
    assert (raised.value.head[0], raised.value.head[1]["x-id"]) == (200, "7")
    # An answer whose body does not matter is one all the same.
    cut = await local.send(OutboundRequest(url=server.url, cut_body=True))
    assert (cut.status, cut.body) == (200, b"")


@pytest.mark.parametrize("coding", ["br", "zstd"])
async def test_an_answer_without_a_body_has_no_coding(
    serve: Serve, local: OutboundClient, coding: str
) -> None:
    server = await serve(ok(b"", f"Content-Encoding: {coding}"))
    answer = await local.send(OutboundRequest(url=server.url))
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("word", ["utf-8", "none", "aws-chunked", "identity", ""])
async def test_a_word_that_is_no_coding_is_passed_over(
    serve: Serve, local: OutboundClient, word: str
) -> None:
    server = await serve(ok(b"hello", f"Content-Encoding: {word}"))
    assert (await local.send(OutboundRequest(url=server.url))).body == b"hello"


async def test_bytes_are_counted_on_the_wire_and_the_body_is_decoded(
    serve: Serve, local: OutboundClient
) -> None:
    body = b"hello " * 1000
    packed = _gzipped(body)
    server = await serve(ok(packed, "Content-Encoding: gzip", "Content-Type: text/plain"))
    answer = await local.send(OutboundRequest(url=server.url + "/a?b=1"))
    assert answer.body == body
    assert answer.bytes_received == len(packed)
    assert answer.final_url == server.url + "/a?b=1"
    assert answer.headers["content-type"] == "text/plain"


_ROWS = b"a,1\n" * 200_000
_PACKED = _gzipped(_ROWS)


@pytest.mark.parametrize(
    ("coding", "content", "body"),
    [
        ("gzip", _PACKED + _gzipped(b"b,2\n") + _gzipped(b""), _ROWS + b"b,2\n"),
        ("x-gzip", _PACKED, _ROWS),
        ("GZip", _PACKED, _ROWS),
        ("gzip", _PACKED + bytes(512), _ROWS),
        ("gzip", _PACKED + b"padding", _ROWS),
        ("deflate", zlib.compress(_ROWS), _ROWS),
        ("deflate", zlib.compress(_ROWS)[2:-4], _ROWS),
        ("identity, gzip", _PACKED, _ROWS),
        ("deflate, gzip", _gzipped(zlib.compress(_ROWS)), _ROWS),
        ("gzip", b"", b""),
        # A coding that is not known leaves the bytes as they are; some servers name a charset.
        ("utf-8", b"a,1", b"a,1"),
    ],
)
async def test_a_body_is_decoded_to_its_end(
    serve: Serve, local: OutboundClient, coding: str, content: bytes, body: bytes
) -> None:
    server = await serve(ok(content, f"Content-Encoding: {coding}"))
    answer = await local.send(OutboundRequest(url=server.url))
    assert answer.body == body


@given(
    members=st.lists(st.binary(max_size=200), min_size=1, max_size=4),
    size=st.integers(1, 60),
)
def test_members_are_decoded_however_they_arrive(members: list[bytes], size: int) -> None:
    packed = b"".join(map(_gzipped, members))
    inflater = Inflater("gzip")
    chunks = [packed[place : place + size] for place in range(0, len(packed), size)]
    pieces = [piece for chunk in chunks for piece in inflater.pieces(chunk)]
    assert b"".join([*pieces, *inflater.end()]) == b"".join(members)


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
