"""Listening for notifications of other processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import psycopg
import pytest
import pytest_asyncio

from runtime.database import libpq_url
from runtime.postgresql import notifier
from runtime.postgresql.notifier import CHANNEL, Notifier, listen
from tests.support.patience import ENOUGH, eventually


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


@asynccontextmanager
async def _worker(database_url: str, heard: asyncio.Queue[str], name: str) -> AsyncIterator[None]:
    """A worker that adds its name to the list when it is notified."""
    connected = asyncio.Event()
    channels = {CHANNEL: lambda _: heard.put_nowait(name)}
    task = asyncio.create_task(listen(libpq_url(database_url), channels, connected.set))
    await connected.wait()
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest_asyncio.fixture
async def sending(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Notifier]:
    """A notifier that knows no workers but those of its test."""
    monkeypatch.setattr(notifier, "WORKER_NAME", "worker of a test")
    monkeypatch.setattr(notifier, "WORKERS_SECONDS", 0)
    one = Notifier(libpq_url(database_url))
    task = asyncio.create_task(one.run())
    yield one
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _told(sending: Notifier, heard: asyncio.Queue[str], count: int) -> Counter[str]:
    """The notifications that each worker received, sent one after the other."""
    told: Counter[str] = Counter()
    async with asyncio.timeout(ENOUGH):
        for _ in range(count):
            sending.notify()
            told[await heard.get()] += 1
    assert heard.empty()
    return told


async def test_workers_are_notified_in_turn(database_url: str, sending: Notifier) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with _worker(database_url, heard, "first"):
        async with _worker(database_url, heard, "second"):
            assert await _told(sending, heard, 10) == {"first": 5, "second": 5}
            sending.notify_workers()
            assert {await heard.get(), await heard.get()} == {"first", "second"}
        await eventually(lambda: _has_gone(database_url), what="the end of its connection")
        assert await _told(sending, heard, 3) == {"first": 3}


async def _has_gone(database_url: str) -> bool:
    """True when one worker listens."""
    async with await psycopg.AsyncConnection.connect(libpq_url(database_url)) as connection:
        found = await connection.execute(
            "SELECT FROM pg_stat_activity WHERE application_name = 'worker of a test'"
            " AND datname = current_database()"
        )
        return found.rowcount == 1


async def test_all_workers_are_notified_where_none_is_known(
    database_url: str, sending: Notifier
) -> None:
    async with await psycopg.AsyncConnection.connect(
        libpq_url(database_url), autocommit=True
    ) as hidden:
        await hidden.execute(f"LISTEN {CHANNEL}")
        sending.notify()
        (told,) = [one async for one in hidden.notifies(timeout=ENOUGH, stop_after=1)]
    assert told.channel == CHANNEL
