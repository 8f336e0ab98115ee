"""Readers that stop in the middle of an answer hold up no other client, and are cut off."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2
import pytest
import pytest_asyncio
from typing_extensions import override

from models.core.access.rules import Principal, PrincipalType, Role
from models.core.base import Id
from models.messages.realtime import mint
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from runtime.configuration.settings import Settings
from tests.support.client import Client
from tests.support.files import stored
from tests.support.patience import ENOUGH, eventually, promised
from tests.support.server import Server, serving
from tests.support.silence import WEBSOCKET, cut_off, rest_of, silent_client
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=30)

SOON = "from api import server; server.STANDSTILL_SECONDS = 6"
STALLED = 10
"""More than the server has connections to its database."""
FEEDS, OF_ONE_USER, AT_ONCE = 1_000, 200, 20
LARGE = 8_000_000
"""Bytes; the kernel buffers half as many unread ones."""
AT_MOST = 20.0
"""Seconds of one call of a neighbour, on a machine that does ten other things."""


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    bounds = {
        "WORKSPACE_CONNECTIONS_PER_ADDRESS": "0",
        "WORKSPACE_DATABASE_POOL_SIZE": "1",
        "WORKSPACE_RATE_LIMIT_KEY": "0",
    }
    async with serving(settings, prepared=SOON, **bounds) as server:
        yield server


@contextlib.asynccontextmanager
async def neighbour(server: Server, space: Space) -> AsyncIterator[list[float]]:
    """The seconds of each call of a workspace, which repeats them while the block runs."""
    seconds: list[float] = []
    headers = {"Authorization": f"Bearer {space.token}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=ENOUGH) as client:

        async def call() -> None:
            while True:
                began = time.monotonic()
                (await client.get(space.path)).raise_for_status()
                seconds.append(time.monotonic() - began)
                await asyncio.sleep(0.05)

        calling = asyncio.create_task(call())
        try:
            yield seconds
        finally:
            calling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await calling


@pytest.mark.long
async def test_unread_downloads_are_aborted(
    server: Server, client: Client, space: Space, foreign: Space
) -> None:
    made = await stored(client, space, bytes(LARGE))
    url = f"{server.url}{urlsplit(made['downloadUrl']).path}"
    async with neighbour(server, foreign) as seconds:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(silent_client(url)) for _ in range(STALLED)]
            await cut_off(server, *silent)
            received = [await asyncio.to_thread(rest_of, one) for one in silent]
    # A busy machine gives some of them up before their first byte.
    assert any(received)
    assert all(len(each) < LARGE for each in received)
    assert max(seconds) < promised(AT_MOST)


async def tickets(space: Space, user_ids: Sequence[Id], count: int) -> list[str]:
    """The queries that open this number of connections, of these members in turn."""
    async with space.database.transaction() as work:
        until = work.now + timedelta(hours=1)
        users = [user_ids[number % len(user_ids)] for number in range(count)]
        return [f"ticket={(await mint(work, space.id, user, until)).ticket}" for user in users]


async def happen(space: Space, words: str, count: int = 1) -> None:
    somebody = Principal(type=PrincipalType.SYSTEM, id=space.id, user_id=space.id)
    async with space.database.transaction() as work:
        for _ in range(count):
            what = EventType.WORKSPACE_UPDATED
            await append_event(work, somebody, space.id, what, {"words": words})


class Feed(asyncio.Protocol):
    """A client that reads its feed."""

    def __init__(self, query: str) -> None:
        lines = [f"GET /v1/realtime?{query} HTTP/1.1", "Host: test", *WEBSOCKET, "", ""]
        self._hello = "\r\n".join(lines).encode()
        self.received = bytearray()
        self.transport: asyncio.Transport

    def as_made(self) -> "Feed":
        return self

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._hello)

    @override
    def data_received(self, data: bytes) -> None:
        self.received += data


@contextlib.asynccontextmanager
async def following(
    server: Server, space: Space, members: Sequence[Id]
) -> AsyncIterator[list[Feed]]:
    """Clients that all have been welcomed, some at a time, each with a ticket that is fresh."""
    loop, feeds = asyncio.get_running_loop(), list[Feed]()
    try:
        for _ in range(0, FEEDS, AT_ONCE):
            made = [Feed(query) for query in await tickets(space, members, AT_ONCE)]
            feeds += made
            for one in made:
                await loop.create_connection(one.as_made, "127.0.0.1", server.port)
            await heard(made, b'"ready"')
        yield feeds
    finally:
        for feed in feeds:
            feed.transport.abort()


async def heard(feeds: Sequence[Feed], words: bytes) -> None:
    """Return once all of them have read these words."""
    left = list(feeds)

    async def have_all() -> bool:
        left[:] = [feed for feed in left if words not in feed.received]
        return not left

    await eventually(have_all, what=f"{words!r} in every feed")


@pytest.mark.long
async def test_a_thousand_feeds_continue_beside_readers_that_read_nothing(
    server: Server, space: Space, foreign: Space
) -> None:
    members = [(await space.member(Role.VIEWER))[0] for _ in range(FEEDS // OF_ONE_USER)]
    await happen(foreign, "x" * 50_000, count=LARGE // 50_000)
    async with (
        following(server, space, members) as feeds,
        neighbour(server, space) as seconds,
    ):
        with contextlib.ExitStack() as stack:
            # Each is still being told of what happened before it came.
            queries = await tickets(foreign, [foreign.user_id], 2 * STALLED)
            urls = [f"{server.url}/v1/realtime?{query}&since=0" for query in queries]
            ways = [WEBSOCKET, ()] * STALLED
            opening = [silent_client(url, *way) for url, way in zip(urls, ways, strict=True)]
            silent = [stack.enter_context(one) for one in opening]
            await happen(space, "beside those who read nothing")
            await heard(feeds, b"beside those who read nothing")
            await cut_off(server, *silent)
        await happen(space, "after them")
        await heard(feeds, b"after them")
        assert not any(feed.transport.is_closing() for feed in feeds)
    assert max(seconds) < promised(AT_MOST)
