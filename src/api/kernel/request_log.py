"""Writes the request log in batches, outside of the requests and their transactions."""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import exc

from models.people.api_keys.commands import mark_keys_used, move_digests
from models.people.browser_sessions.commands import mark_sessions_used
from models.people.request_logs.commands import LogEntry, append_entries
from runtime.database import Database

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
            except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError):
                self._entries.extendleft(reversed(batch))
                self._used_keys = {**used_keys, **self._used_keys}
                self._used_sessions = {**used_sessions, **self._used_sessions}
                self._moved_digests = {**moved_digests, **self._moved_digests}
                self._filled.set()
                _log.warning("request_log_waits_for_the_database", queued=len(self._entries))
                return
            except exc.DBAPIError as error:
                self.dropped += len(batch)
                _log.warning("request_log_batch_refused", error_type=type(error.orig).__name__)

    async def _run(self) -> None:
        reported = 0
        while not self._stopping.is_set():
            await self._filled.wait()
            self._filled.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _INTERVAL_SECONDS)
            await self.flush()
            if self.dropped != reported:
                reported = self.dropped
                _log.warning("request_log_dropped", total=reported)
