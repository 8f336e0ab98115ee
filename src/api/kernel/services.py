"""The long-lived objects of an API process, and what runs beside its requests."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import sqlalchemy as sa
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

import models.tables  # noqa: F401  # all sealed values
from api.kernel.awaited_work import AwaitedWork
from api.kernel.limits import ConnectionShares, RateLimits
from api.kernel.sessions import IdentityProvider, SessionVerifier
from api.metrics import Metrics
from api.realtime.feeds import Streams
from api.realtime.hub import Hub, Presence
from models.automation.alert_rules.commands import evaluate_overdue
from models.core.secret_keys import WrongSecretKeyError, register_keys
from models.people.api_keys import mark_keys_used, move_digests
from models.people.credentials import mark_sessions_used
from models.people.request_logs import LogEntry, append_entries
from runtime.clock import wait_until_set
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database, libpq_url
from runtime.object_store import ObjectStore
from runtime.outbound_policy import OutboundPolicy
from runtime.postgresql.notifier import ANSWER_CHANNEL, LOG_CHANNEL, Notifier, listen

_INTERVAL_SECONDS = 0.2
_CAPACITY = 20_000
_BATCH = 1_000

_log = structlog.get_logger(__name__)


class RequestLogWriter:
    """A bounded queue and the task that empties it; what does not fit is counted and dropped."""

    def __init__(self, database: Database, capacity: int = _CAPACITY) -> None:
        self._database = database
        self._capacity = capacity
        self._entries: deque[LogEntry] = deque()
        self._used_keys: dict[UUID, datetime] = {}
        self._used_sessions: dict[bytes, datetime] = {}
        self._moved_digests: dict[UUID, tuple[bytes, bytes]] = {}
        self._filled = asyncio.Event()
        self._stopping = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

    def record(self, entry: LogEntry) -> None:
        """Queue one row."""
        if len(self._entries) >= self._capacity:
            self.dropped += 1
        else:
            self._entries.append(entry)
        self._filled.set()

    def touch(self, key_id: UUID, moment: datetime) -> None:
        """Queue that a key was used; callers do so at most once a minute for a key."""
        self._used_keys[key_id] = moment
        self._filled.set()

    def touch_session(self, digest: bytes, moment: datetime) -> None:
        """Queue that a session in a browser was used; as seldom as keys."""
        self._used_sessions[digest] = moment
        self._filled.set()

    def move_digest(self, key_id: UUID, digest: bytes, digest_key: bytes) -> None:
        """Queue that a key was used whose digest is not under the current secret key."""
        self._moved_digests[key_id] = (digest, digest_key)
        self._filled.set()

    def start(self) -> None:
        """Begin to empty the queue."""
        self._stopping.clear()
        self._task = asyncio.create_task(self._run(), name="request-log")

    async def stop(self) -> None:
        """Write what is queued and end."""
        self._stopping.set()
        self._filled.set()
        if self._task is not None:
            await self._task
            self._task = None
        await self.flush()

    async def flush(self) -> None:
        """Write everything queued so far; keeps it for later when the database is away."""
        # Another flush may have taken entries that it has not written yet.
        async with self._flushing:
            await self._write()

    async def _write(self) -> None:
        # Entries queued from here on wait for the next flush; a busy API would write row by row.
        queued = len(self._entries)
        while queued or self._used_keys or self._used_sessions or self._moved_digests:
            batch = [self._entries.popleft() for _ in range(min(_BATCH, queued))]
            queued -= len(batch)
            used_keys, self._used_keys = self._used_keys, {}
            used_sessions, self._used_sessions = self._used_sessions, {}
            moved_digests, self._moved_digests = self._moved_digests, {}
            try:
                async with self._database.transaction() as work:
                    await append_entries(work, batch)
                    await mark_keys_used(work, used_keys)
                    await mark_sessions_used(work, used_sessions)
                    await move_digests(work, moved_digests)
            except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError):
                self._entries.extendleft(reversed(batch))
                self._used_keys = {**used_keys, **self._used_keys}
                self._used_sessions = {**used_sessions, **self._used_sessions}
                self._moved_digests = {**moved_digests, **self._moved_digests}
                self._filled.set()
                _log.warning("request_log_waits_for_the_database", queued=len(self._entries))
                return
            except sa.exc.DBAPIError as error:
                self.dropped += len(batch)
                _log.warning("request_log_batch_refused", error_type=type(error.orig).__name__)

    async def _run(self) -> None:
        reported = 0
        while not self._stopping.is_set():
            await self._filled.wait()
            self._filled.clear()
            await wait_until_set(self._stopping, _INTERVAL_SECONDS)
            await self.flush()
            if self.dropped != reported:
                reported = self.dropped
                _log.warning("request_log_dropped", total=reported)


log = structlog.get_logger()

_REGISTERED_AGAIN_SECONDS = 2.0
"""Until a database that is away is asked again."""


@dataclass(slots=True)
class Services:
    """Held at `app.state.services`.

    `create_app` makes them once; every request finds them as `request.services`.
    """

    settings: Settings
    database: Database
    keys: KeyRing
    sessions: SessionVerifier | None
    request_log: RequestLogWriter
    store: ObjectStore
    limits: RateLimits
    shares: ConnectionShares
    outbound: OutboundPolicy
    provider: IdentityProvider | None = None
    """The identity provider that people sign in at."""
    streams: Streams = field(default_factory=Streams)
    awaited: AwaitedWork = field(default_factory=AwaitedWork)
    metrics: Metrics = field(init=False)
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.database)
        self.hub = Hub(self.database)


Background = Callable[[Services], AbstractAsyncContextManager[None]]
"""Something that runs beside the requests: entered at start, left at shutdown."""


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run something in a task of its own for the length of the block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def object_store(services: Services) -> AsyncIterator[None]:
    """Report a store that cannot be used."""
    async with beside(services.store.report(), "object store"):
        yield


@asynccontextmanager
async def notifications(services: Services) -> AsyncIterator[None]:
    """Notify workers, and readers of logs, after each commit that concerns them."""
    notifier = Notifier(services.settings.database_url.get_secret_value())
    services.database.notify_workers = notifier.notify
    services.database.notify_readers = notifier.notify_readers
    services.database.notify_waiters = notifier.notify_waiters
    async with beside(notifier.run(), "notifier"):
        yield


@asynccontextmanager
async def feeds(services: Services) -> AsyncIterator[None]:
    """Tell requests and connected clients of what other processes have committed."""
    hub, awaited = services.hub, services.awaited
    url = libpq_url(services.settings.database_url.get_secret_value())

    def on_connect() -> None:
        hub.wake_all()
        awaited.wake_all()

    channels = {LOG_CHANNEL: hub.grown, ANSWER_CHANNEL: awaited.wake}
    listening = listen(url, channels, on_connect)
    tasks = [
        asyncio.create_task(one)
        for one in (hub.run(), Presence(services.database, hub).run(), listening)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def secret_keys(services: Services) -> AsyncIterator[None]:
    """Record the secret key that the process writes under, once the database answers."""
    async with beside(_register(services), "secret-keys"):
        yield


async def _register(services: Services) -> None:
    while True:
        try:
            async with services.database.transaction() as work:
                await register_keys(work, services.keys)
        except WrongSecretKeyError as error:
            # `/readyz` says so as long as it is true.
            log.critical("the secret key is wrong", reason=error.message, keys=error.keys)
            return
        except (psycopg.Error, DBAPIError, PoolTimeoutError):
            await asyncio.sleep(_REGISTERED_AGAIN_SECONDS)
        else:
            return


SECONDS = 30.0
"""Seconds between two looks for rules that are overdue."""


@asynccontextmanager
async def overdue_alerts(services: Services) -> AsyncIterator[None]:
    """Evaluate overdue rules beside the requests."""
    async with beside(_evaluate_forever(services.database), "overdue-alerts"):
        yield


async def _evaluate_forever(database: Database) -> None:
    while True:
        try:
            await evaluate_all_overdue(database)
        except (psycopg.Error, DBAPIError, PoolTimeoutError):
            log.warning("overdue alert rules could not be evaluated", exc_info=True)
        except Exception:
            log.exception("the evaluation of overdue alert rules failed")
        await asyncio.sleep(SECONDS)


async def evaluate_all_overdue(database: Database) -> None:
    """Evaluate the rules that are overdue, some in each transaction."""
    evaluated = 1
    while evaluated:
        async with database.transaction() as work:
            evaluated = await evaluate_overdue(work)
