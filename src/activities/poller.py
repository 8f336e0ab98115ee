"""Loops of a worker, and pollers: one look a second asks for all of them what is due."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import psycopg
import structlog
from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from typing_extensions import override

from runtime.database import Database
from runtime.prepared_statement import PreparedStatement

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""Seconds between two looks without a notification: for lost ones, and for what time brings."""
SPACING_SECONDS = 0.03
"""Seconds at least between two looks. A busy platform notifies more often than it has triggers."""


class Loop(ABC):
    """Turns for ever; an unreachable database only delays them."""

    async def run(self) -> None:
        while True:
            try:
                await self.step()
            except (psycopg.Error, DBAPIError, PoolTimeoutError, PendingRollbackError):
                log.warning(
                    "the database could not be asked", by=type(self).__name__, exc_info=True
                )
                await asyncio.sleep(POLL_SECONDS)
            except Exception:
                # Such as a MemoryError, which may meet any task of a worker at its limit.
                log.exception("a turn failed", by=type(self).__name__)
                await asyncio.sleep(POLL_SECONDS)

    @abstractmethod
    async def step(self) -> None:
        """Wait for something to do, and do it."""


class DueWork(Protocol):
    """Work that a look wakes when something is due for it."""

    @property
    def due(self) -> ColumnElement[bool]:
        """True in PostgreSQL while there may be something to do, and cheap to ask."""

    @property
    def prompt(self) -> bool:
        """True when a look after a notification asks for it, not only that of each second."""

    def wake(self) -> None:
        """Look for rows now."""


class Poller(Loop):
    """Takes turns from the moment it is woken until one finds nothing."""

    due: ClassVar[ColumnElement[bool]]
    prompt: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for rows now."""
        self._wake.set()

    @abstractmethod
    async def turn(self) -> bool:
        """Act on some rows. False when there were none."""

    @override
    async def step(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        while await self.turn():
            pass


class DueLook(Loop):
    """Wakes the pollers that have something to do, by one statement for all of them."""

    def __init__(self, database: Database, pollers: Sequence[DueWork]) -> None:
        self._database = database
        self._pollers = pollers
        self._prompt = [poller for poller in pollers if poller.prompt]
        self._statements = {
            notified: PreparedStatement(
                select(*(one.due.label(f"due_{n}") for n, one in enumerate(self._asked(notified))))
            )
            for notified in (False, True)
        }
        self._notified = asyncio.Event()
        self._timed_look = 0.0

    def wake(self) -> None:
        """Look now, for pollers that are prompt."""
        self._notified.set()

    @override
    async def step(self) -> None:
        # wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0, self._timed_look - time.monotonic())):
                await self._notified.wait()
        # A timer may end a little early, so the time alone does not say who woke this.
        notified = self._notified.is_set() and time.monotonic() < self._timed_look
        if not notified:
            self._timed_look = time.monotonic() + POLL_SECONDS
        self._notified.clear()
        async with self._database.statement() as single:
            (row,) = await self._statements[notified].rows(single, {})
        for poller, due in zip(self._asked(notified), row, strict=True):
            if due:
                poller.wake()
        await asyncio.sleep(SPACING_SECONDS)

    def _asked(self, notified: bool) -> Sequence[DueWork]:
        return self._prompt if notified else self._pollers
