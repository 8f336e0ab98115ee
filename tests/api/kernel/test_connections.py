"""Connections that are silent, slow, endless or too many (RFC 9112; RFC 6585, 5)."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from uvicorn import Config
from uvicorn.server import ServerState

from api.server import MOST_HEAD_BYTES, BoundedConnection, ConnectionLimits, _host
from runtime.configuration.settings import Settings
from tests.support.files import Wire
from tests.support.patience import ENOUGH, eventually
from tests.support.silence import rest_of, silent_client
from tests.support.spaces import Space

SECONDS = 0.15
MOST = 3

Connect = Callable[[], Awaitable[Wire]]


@pytest.fixture
def state() -> ServerState:
    """What the server holds."""
    return ServerState()


@pytest_asyncio.fixture
async def connect(
    _probe_app: FastAPI, settings: Settings, state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Connect]:
    """Opens connections to a server whose clients must be quick."""
    hurried = settings.model_copy(update={"receive_seconds": SECONDS})
    monkeypatch.setattr(_probe_app.state.services, "settings", hurried)
    made = partial(
        BoundedConnection,
        ConnectionLimits(SECONDS, MOST),
        config=Config(
            _probe_app,
            lifespan="off",
            ws="none",
            log_config=None,
            server_header=False,
            timeout_keep_alive=1,
        ),
        server_state=state,
        app_state={},
    )
    listener = socket.create_server(("127.0.0.1", 0))
    # The kernel keeps little of an answer.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    server = await asyncio.get_running_loop().create_server(made, sock=listener)
    port = listener.getsockname()[1]
    wires: list[Wire] = []

    async def connecting() -> Wire:
        wires.append(Wire(*await asyncio.open_connection("127.0.0.1", port)))
        return wires[-1]

    yield connecting
    for wire in wires:
        await wire.close()
    server.close()
    await server.wait_closed()


async def _closed(wire: Wire) -> bytes:
    """What the server still sends before it closes the connection."""
    async with asyncio.timeout(ENOUGH):
        received = b""
        with suppress(ConnectionError):
            while piece := await wire.reader.read(65536):
                received += piece
        return received


async def _refused(wire: Wire, status: int, *, closes: bool = True) -> dict[str, Any]:
    """The next answer on the connection, which must be a refusal of this status."""
    lines = (await wire.head()).lower().split("\r\n")
    assert lines[0].startswith(f"http/1.1 {status} ")
    assert lines.count("x-content-type-options: nosniff") == 1
    assert [line for line in lines if "connection" in line] == ["connection: close"] * closes
    headers = dict(line.split(": ", 1) for line in lines[1:] if line)
    assert headers["x-request-id"]
    told: dict[str, Any] = json.loads(await wire.reader.readexactly(int(headers["content-length"])))
    assert told["status"] == status
    await _closed(wire)
    return told


async def _drip(wire: Wire, piece: bytes, pause: float = SECONDS / 4) -> None:
    """Send a piece again and again, until the server closes the connection."""
    while not wire.reader.at_eof():
        try:
            await wire.send(piece)
        except ConnectionError:
            return
        await asyncio.sleep(pause)


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"


async def test_a_silent_connection_is_closed(connect: Connect) -> None:
    assert await _closed(await connect()) == b""


async def test_a_dripping_head_is_answered_with_the_reason(connect: Connect) -> None:
    wire = await connect()
    await wire.send(b"GET /healthz HTTP/1.1\r\n")
    dripping = asyncio.create_task(_drip(wire, b"a: b\r\n"))
    told = await _refused(wire, 408)
    await dripping
    assert (told["_tag"], told["error"]) == ("ApiRequestTimeout", "request_timeout")


async def test_line_ends_between_requests_are_no_sign_of_life(connect: Connect) -> None:
    wire = await connect()
    await wire.send(HEALTH)
    assert " 200 " in await wire.head()
    dripping = asyncio.create_task(_drip(wire, b"\r\n"))
    assert await _closed(wire) == b'{"data":{"status":"ok"}}'
    await dripping


async def test_a_connection_is_used_again(connect: Connect) -> None:
    wire = await connect()
    for _ in range(3):
        await wire.send(HEALTH)
        assert " 200 " in await wire.head()
        await wire.reader.readexactly(24)
        await asyncio.sleep(SECONDS * 1.2)


@pytest.mark.parametrize("framing", ["Content-Length: 900", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", ["/errands", "/files", None], ids=["json", "upload", "webhook"])
async def test_a_dripping_body_is_answered_with_the_reason(
    connect: Connect, space: Space, path: str | None, framing: str
) -> None:
    wire = await connect()
    target = "/v1/hooks/abc" if path is None else space.path + path
    head = [f"POST {target} HTTP/1.1", "Host: test", f"Authorization: Bearer {space.token}"]
    await wire.send("\r\n".join([*head, framing, "", ""]).encode())
    piece = b"x" if "Length" in framing else b"1\r\nx\r\n"
    dripping = asyncio.create_task(_drip(wire, piece))
    told = await _refused(wire, 408, closes=False)
    await dripping
    assert told["error"] == "request_timeout"


async def test_a_body_that_keeps_its_rate_is_taken(connect: Connect, space: Space) -> None:
    wire = await connect()
    body = b'{"text": "' + b"x" * 888 + b'"}'
    head = [f"POST {space.path}/wishes HTTP/1.1", "Host: test", "Content-Length: 900"]
    head += [f"Authorization: Bearer {space.token}", "Content-Type: application/json", "", ""]
    await wire.send("\r\n".join(head).encode())
    for start in range(0, 900, 90):
        await wire.send(body[start : start + 90])
        await asyncio.sleep(SECONDS / 5)
    assert " 200 " in await wire.head()


async def test_a_body_that_is_no_longer_read_is_not_awaited(connect: Connect) -> None:
    wire = await connect()
    await wire.send(b"POST /v1/workspaces HTTP/1.1\r\nHost: test\r\nContent-Length: 900\r\n\r\n")
    assert " 401 " in await wire.head()
    dripping = asyncio.create_task(_drip(wire, b"x"))
    await _closed(wire)
    await dripping


async def test_a_client_whose_answer_is_pending_is_not_late(connect: Connect, space: Space) -> None:
    wire = await connect()
    body = b'{"text": "hurry"}'
    head = [f"POST {space.path}/errands HTTP/1.1", "Host: test", f"Content-Length: {len(body)}"]
    head += [f"Authorization: Bearer {space.token}", "Content-Type: application/json", "", ""]
    await wire.send("\r\n".join(head).encode() + body + b"GET /healthz HTT")
    await asyncio.sleep(SECONDS * 1.5)
    await wire.send(b"P/1.1\r\n")
    assert " 409 " in await wire.head()


@pytest.mark.long
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
async def test_an_answer_whose_end_is_not_read_is_aborted(
    connect: Connect,
    state: ServerState,
    space: Space,
    monkeypatch: pytest.MonkeyPatch,
    connection: str,
) -> None:
    monkeypatch.setattr("api.server.STANDSTILL_SECONDS", SECONDS)
    before = await connect()
    host, port = before.writer.get_extra_info("peername")
    await before.close()
    url = f"http://{host}:{port}{space.path}/wishes"
    headers = [f"Authorization: Bearer {space.token}", f"Connection: {connection}"]
    # Less than makes the server wait before it has sent all.
    body = json.dumps({"text": "x" * 40_000}).encode()
    with silent_client(
        url, *headers, "Content-Type: application/json", method="POST", body=body
    ) as silent:
        await eventually(lambda: asyncio.sleep(0, bool(state.connections)), "the connection")
        await eventually(lambda: asyncio.sleep(0, not state.connections), "its end")
        received = await asyncio.to_thread(rest_of, silent)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert len(received) < len(body)


@pytest.mark.parametrize(
    ("sent", "again", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\n", b"a: " + b"b" * 997 + b"\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\na: ", b"b" * 1000, 431),
        (b"GET /", b"b" * 1000, 431),
        (
            b"POST /v1/hooks/abc HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"a: " + b"b" * 997 + b"\r\n",
            431,
        ),
        (b"GET /" + b"b" * 70_000 + b" HTTP/1.1\r\nHost: test\r\n\r\n", b"", 431),
        (b"GET nothing\r\n\r\n", b"", 400),
        (b"\x16\x03\x01\x02\x00", b"", 400),
    ],
    ids=["headers", "one-header", "path", "trailers", "line", "no-http", "tls"],
)
async def test_endless_and_malformed_heads(
    connect: Connect, sent: bytes, again: bytes, status: int
) -> None:
    wire = await connect()
    await wire.send(sent)
    if again:
        await wire.send(again * (MOST_HEAD_BYTES // len(again) + 1))
    await _refused(wire, status)


@pytest.mark.parametrize("body", [b"", b"Content-Length: 2\r\n\r\n{}"])
@pytest.mark.parametrize("hosts", [b"", b"Host: a\r\nHost: b\r\n", b"Host: a\r\nhOST: a\r\n"])
async def test_a_request_names_its_host_once(connect: Connect, hosts: bytes, body: bytes) -> None:
    wire = await connect()
    await wire.send(b"POST /v1/hooks/abc HTTP/1.1\r\n" + hosts + (body or b"\r\n") + HEALTH)
    told = await _refused(wire, 400)
    assert told["message"] == "An HTTP/1.1 request must have one Host header."


async def test_a_request_of_1_0_needs_no_host(connect: Connect) -> None:
    wire = await connect()
    await wire.send(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert " 200 " in await wire.head()


async def test_trailers_are_no_headers(connect: Connect, space: Space) -> None:
    wire = await connect()
    head = [f"POST {space.path}/wishes HTTP/1.1", "Host: test", "Transfer-Encoding: chunked"]
    head += ["Content-Type: application/json", f"Authorization: Bearer {space.token}", "", ""]
    trailer = f"Authorization: Bearer {space.token}\r\n"
    await wire.send("\r\n".join(head).encode() + f"2\r\n{{}}\r\n0\r\n{trailer}\r\n".encode())
    assert " 200 " in await wire.head()


async def test_one_address_holds_a_limited_number_of_connections(connect: Connect) -> None:
    wires = [await connect() for _ in range(MOST)]
    told = await _refused(await connect(), 429)
    assert told["error"] == "rate_limited"
    await wires[0].send(HEALTH)
    assert " 200 " in await wires[0].head()
    await wires[1].close()
    await asyncio.sleep(0.01)
    last = await connect()
    await last.send(HEALTH)
    assert " 200 " in await last.head()


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1%eth0", "2001:db8::/64"),
        ("", ""),
    ],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert _host(address) == host
