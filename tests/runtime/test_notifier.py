"""Listening for notifications of other processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import psycopg
import pytest_asyncio

from runtime.database import libpq_url
from runtime.notifier import listen
from tests.support.patience import ENOUGH


class Listening:
    """A listener of two channels, and what it has heard."""

    def __init__(self, url: str) -> None:
        self.heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.connected = asyncio.Event()
        channels = {name: self._hear(name) for name in ("first", "second")}
        self.task = asyncio.create_task(listen(url, channels, self.connected.set))

    def _hear(self, channel: str) -> Callable[[str], None]:
        return lambda payload: self.heard.put_nowait((channel, payload))

    async def next(self) -> tuple[str, str]:
        async with asyncio.timeout(ENOUGH):
            return await self.heard.get()


@pytest_asyncio.fixture
async def listening(database_url: str) -> AsyncIterator[Listening]:
    one = Listening(libpq_url(database_url))
    await one.connected.wait()
    yield one
    one.task.cancel()
    with suppress(asyncio.CancelledError):
        await one.task


async def _execute(database_url: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(
        libpq_url(database_url), autocommit=True
    ) as connection:
        await connection.execute(statement)


async def test_each_notification_is_heard_on_its_channel(
    listening: Listening, database_url: str
) -> None:
    for number in range(3):
        await _execute(database_url, f"NOTIFY first, '{number}'; NOTIFY second, 'ä'")
        assert {await listening.next(), await listening.next()} == {
            ("first", str(number)),
            ("second", "ä"),
        }
    await _execute(
        database_url, "SELECT pg_notify('first', n::text) FROM generate_series(1, 2000) AS n"
    )
    assert [await listening.next() for _ in range(2000)] == [
        ("first", str(n)) for n in range(1, 2001)
    ]


async def test_a_listener_comes_back_after_it_lost_its_connection(
    listening: Listening, database_url: str
) -> None:
    listening.connected.clear()
    await _execute(
        database_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query = 'LISTEN second' AND datname = current_database()",
    )
    async with asyncio.timeout(ENOUGH):
        await listening.connected.wait()
    await _execute(database_url, "NOTIFY second, 'again'")
    assert await listening.next() == ("second", "again")
