"""The work that prepared statements run in: a transaction, or a single statement."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import psycopg
from typing_extensions import override

from runtime.clock import utc_now
from runtime.timestamps import truncate


@dataclass(frozen=True, slots=True)
class PrefetchedRow:
    """A row that was read ahead (`prefetching`): of which statement, and with which parameters."""

    statement: object
    parameters: Mapping[str, Any]
    row: Any
    """None where there is none."""


class Work(ABC):
    """The work that prepared statements run in; `now` is the same for all of it."""

    def __init__(self) -> None:
        self.now: datetime = utc_now()
        self.answered: set[UUID] = set()
        """Durable work whose end, or answer, is written here: requests that wait for it are
        notified after the commit.
        """
        self.prefetched_rows: list[PrefetchedRow] = []
        """Rows that nobody has asked for yet; whoever asks first takes them."""
        self._moments = count()

    def next_moment(self) -> datetime:
        """`now`, and a microsecond later each time: for rows that stand in line as they were made.

        The wire does not show the difference.
        """
        return self.now + timedelta(microseconds=next(self._moments))

    def now_after(self, seconds: float) -> datetime:
        """The moment `seconds` after this work's own."""
        return truncate(self.now + timedelta(seconds=seconds))

    @abstractmethod
    async def driver(self) -> psycopg.AsyncConnection[Any]:
        """The driver's own connection."""

    @abstractmethod
    async def lost(self) -> None:
        """The driver found its connection dead."""


class SingleStatement(Work):
    """One prepared statement, which PostgreSQL itself makes a transaction."""

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], check: Callable[[], Awaitable[None]]
    ) -> None:
        """`check` has the pool look at its other connections."""
        super().__init__()
        self._connection = connection
        self._check = check
        self._used = False

    @override
    async def driver(self) -> psycopg.AsyncConnection[Any]:
        if self._used:
            raise RuntimeError("One statement was announced; use transaction() for several.")
        self._used = True
        return self._connection

    @override
    async def lost(self) -> None:
        """Its pool discards it by itself, and now what was lost with it."""
        await self._check()
