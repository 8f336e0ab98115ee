"""Feeds: tickets, how soon a commit reaches 500 clients, and what 1,000 idle ones cost.

The floor of a feed is a server that hears NOTIFY and writes to as many sockets. Its clients, and
ours, are the same: they note when bytes arrive, and read nothing of them.
"""

import asyncio
import base64
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import httpx2
import psutil
import psycopg
from sqlalchemy import text
from typing_extensions import override

from bench.figures import Figure, quantile
from bench.floor_feed import LINE, floor_feed
from bench.platform import Platform
from bench.rounds import Rounds
from cli.supervisor.development import ensure_issuer
from runtime.database import Database
from runtime.postgresql.notifier import Notifier

CLIENTS = 500
IDLE = 1_000
USERS = 10
CHANGES = 20
MOST_KIB = 64
"""Memory of the server for one client that hears nothing."""

_MEMBERS = """
WITH person AS (
    INSERT INTO app_user (id, issuer, subject, email, name, created_at, updated_at)
    SELECT gen_random_uuid(), 'urn:workspace:development', email, email, 'Bench', now(), now()
    FROM unnest(%(emails)s::text[]) AS email RETURNING id
)
INSERT INTO workspace_member (workspace_id, user_id, role, created_at)
SELECT %(workspace)s, id, 'editor', now() FROM person
"""


class _Client(asyncio.Protocol):
    """Notes when it was last sent anything."""

    def __init__(self, hello: bytes) -> None:
        self._hello = hello
        self.heard_at = 0.0
        self.received = 0
        self.transport: asyncio.Transport

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._hello)

    @override
    def data_received(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        self.received += len(data)


async def feed_figures(platform: Platform, rounds: Rounds, count: int, state: Path) -> list[Figure]:
    """Tickets a second, seconds from a commit to a client, and bytes of an idle client."""
    sessions = await _sessions(platform, state)
    tickets = Figure("ticket minted vs authenticated GET", "1/s", at_least=0.5)
    for _ in rounds:
        await _tickets(platform, tickets, sessions[0], count)
    return [tickets, *await _feeds(platform, rounds, sessions)]


async def _sessions(platform: Platform, state: Path) -> list[str]:
    emails = [f"listener-{number}@example.test" for number in range(USERS)]
    workspace = platform.connection["workspaceId"]
    await platform.database.execute(_MEMBERS, {"emails": emails, "workspace": workspace})
    issuer = ensure_issuer(state)
    return [issuer.mint(email, "Bench") for email in emails]


async def _tickets(platform: Platform, figure: Figure, session: str, count: int) -> None:
    path = f"/v1/workspaces/{platform.connection['workspaceId']}"
    headers = {"Authorization": f"Bearer {session}"}

    async def ours() -> httpx2.Response:
        return await platform.http.post(f"{path}/realtime/ticket", headers=headers)

    async def theirs() -> httpx2.Response:
        return await platform.http.get(path, headers=headers)

    spent = [0.0, 0.0]
    for _ in range(count):
        for side, call in enumerate((ours, theirs)):
            started = time.perf_counter()
            (await call()).raise_for_status()
            spent[side] += time.perf_counter() - started
    figure.add(count / spent[0], count / spent[1])


async def _feeds(platform: Platform, rounds: Rounds, sessions: list[str]) -> list[Figure]:
    reached = Figure(f"commit to {CLIENTS} clients vs NOTIFY to sockets, p50", "ms", at_most=2.0)
    idle = Figure(f"{IDLE} idle clients, KiB each vs {MOST_KIB}", "KiB", at_most=1.0)
    api = psutil.Process(platform.api_pid)
    async with AsyncExitStack() as stack:
        change = await stack.enter_async_context(_changing(platform))
        notify = await stack.enter_async_context(_notifying(platform))
        floor_port = await stack.enter_async_context(floor_feed(platform.database_url))
        before = api.memory_info().rss
        ours = await _connected(platform, sessions, CLIENTS)
        floor = [await _client("127.0.0.1", floor_port, LINE) for _ in range(CLIENTS)]
        for _ in rounds:
            ours_ms, floor_ms = await _times((change, ours), (notify, floor))
            reached.add(quantile(ours_ms, 0.5), quantile(floor_ms, 0.5))
            reached.tail([ms / 1000 for ms in ours_ms], [ms / 1000 for ms in floor_ms])
        ours += await _connected(platform, sessions, IDLE - CLIENTS)
        idle.add((api.memory_info().rss - before) / 1024 / IDLE, MOST_KIB)
        spent = sum(api.cpu_times()[:2])
        await asyncio.sleep(2)
        idle.tails = f"{(sum(api.cpu_times()[:2]) - spent) / 2:.1%} of a core"
        for client in [*ours, *floor]:
            client.transport.abort()
    return [reached, idle]


async def _times(*sides: tuple[Callable[[], Awaitable[float]], list[_Client]]) -> list[list[float]]:
    """Milliseconds from changes until clients hear of them, on each side, in turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(CHANGES):
        for (change, clients), own in zip(sides, times, strict=True):
            for client in clients:
                client.heard_at = 0.0
            began = await change()
            async with asyncio.timeout(20):
                while not all(client.heard_at for client in clients):
                    await asyncio.sleep(0.002)
            own += [(client.heard_at - began) * 1000 for client in clients]
            await asyncio.sleep(0.02)
    return times


@asynccontextmanager
async def _changing(platform: Platform) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Changes an item as any process of the platform does; gives when it was committed."""
    database, notifier = Database(platform.database_url), Notifier(platform.database_url)
    database.notify_readers = notifier.notify_readers
    sending = asyncio.create_task(notifier.run())
    made = await platform.post("/v1/items", {"kind": "folder", "title": "Followed"})
    item = UUID(made["item"]["id"])

    async def change() -> float:
        async with database.transaction() as work:
            await work.execute(
                text("UPDATE item SET position = position + 1 WHERE id = :id"), {"id": item}
            )
        return time.monotonic()

    try:
        yield change
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await database.close()


@asynccontextmanager
async def _notifying(platform: Platform) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Sends a bare NOTIFY; gives when that began."""
    connecting = psycopg.AsyncConnection.connect(platform.database_url, autocommit=True)
    async with await connecting as connection:

        async def notify() -> float:
            began = time.monotonic()
            await connection.execute("NOTIFY floor_feed, 'changed'")
            return began

        yield notify


async def _connected(platform: Platform, sessions: list[str], count: int) -> list[_Client]:
    """Clients of the workspace's feed, all of which have been welcomed."""
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/realtime/ticket"
    clients = []
    for number in range(count):
        headers = {"Authorization": f"Bearer {sessions[number % len(sessions)]}"}
        answer = await platform.http.post(path, headers=headers)
        url = urlsplit(answer.raise_for_status().json()["data"]["url"])
        assert url.hostname is not None
        assert url.port is not None
        clients.append(await _client(url.hostname, url.port, _handshake(url.query)))
    async with asyncio.timeout(20):
        # The answer to the handshake, and the first message.
        while not all(client.received > 150 for client in clients):
            await asyncio.sleep(0.01)
    return clients


async def _client(host: str, port: int, hello: bytes) -> _Client:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: _Client(hello), host, port)
    return client


def _handshake(query: str) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        f"GET /v1/realtime?{query} HTTP/1.1",
        "Host: 127.0.0.1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
