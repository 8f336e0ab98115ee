"""Processes whose every step is chosen: tasks that stop before and after each transaction and call.

The scenario lets a task do one step at a time, or ends it with its process. No task holds a lock or
a connection while it is stopped, so no step ever waits for another.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace, coroutine
from typing import Any

import psycopg
import pytest
from psycopg import waiting
from psycopg._preparing import PrepareManager
from temporalio.service import RPCError, RPCStatusCode

import runtime.clock
import runtime.ids
from activities.automation_runs import node_execution, quick_nodes
from activities.outbox import relay
from models.automation.automation_runs import queries, retries
from runtime.database import Database, SingleStatement, Transaction, UnitOfWork
from runtime.postgresql import sessions

BLOCKED_SECONDS = 60
"""A step takes milliseconds. One that takes so long waits for another, which stands."""
LOCKED_SECONDS = 15
"""A statement that takes so long waits for a lock that it can never get."""
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Violation(AssertionError):  # noqa: N818  # what a scenario finds
    """A promise that was not kept."""


class Clock:
    """The time of a scenario. Each look at it is a millisecond later than the one before."""

    def __init__(self) -> None:
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Begin a scenario."""
        self.moment = EPOCH
        self._ids = 0
        self._random = Random(seed)  # noqa: S311  # to be played again

    def now(self, _: Any = None) -> datetime:
        self.moment += timedelta(milliseconds=1)
        return self.moment

    def advance(self, to: datetime) -> None:
        self.moment = max(self.moment, to)

    def nanoseconds(self) -> int:
        """For ids: each is later than the one before."""
        self._ids += 1
        return int(self.moment.timestamp() * 1000) * 1_000_000 + self._ids

    def monotonic(self) -> float:
        return (self.moment - EPOCH).total_seconds()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Have the code of this process read this clock, and take its ids from it."""
        patch.setattr(runtime.clock, "datetime", SimpleNamespace(now=self.now))
        patch.setattr(runtime.ids, "time", SimpleNamespace(time_ns=self.nanoseconds))
        patch.setattr(runtime.ids, "os", SimpleNamespace(urandom=self._random_bytes))
        for module in (node_execution, quick_nodes, relay):
            patch.setattr(module, "time", SimpleNamespace(monotonic=self.monotonic))
        begin = relay._Start.__init__

        def begin_now(start: relay._Start, *arguments: Any, **options: Any) -> None:
            begin(start, *arguments, **options)
            start.at = start.turn_at = self.monotonic()

        patch.setattr(relay._Start, "__init__", begin_now)

    def _random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


def answer_in_place(patch: pytest.MonkeyPatch) -> None:
    """Have statements wait for PostgreSQL without the event loop, and be prepared for good.

    One step is done at a time, so nothing else is done meanwhile (ADR 0158).
    """

    async def wait(
        connection: psycopg.AsyncConnection[Any], generator: Any, *_: Any, **__: Any
    ) -> Any:
        try:
            return waiting.wait(generator, connection.pgconn.socket, BLOCKED_SECONDS)
        except psycopg.errors.LockNotAvailable as error:
            raise Violation(f"a statement waits for the lock of another task: {error}") from error

    patch.setattr(psycopg.AsyncConnection, "wait", wait)
    # A connection is not tried before it is used, however long a slow machine left it idle.
    patch.setattr(sessions, "_FRESH_SECONDS", float("inf"))
    begin = PrepareManager.__init__

    def begin_prepared(manager: PrepareManager) -> None:
        begin(manager)
        # At the first execution, and as many as there are.
        manager.prepare_threshold, manager.prepared_max = 0, 10_000

    patch.setattr(PrepareManager, "__init__", begin_prepared)
    _answer_with_rows(patch)


def _answer_with_rows(patch: pytest.MonkeyPatch) -> None:
    """Answer calls of people with the row of their run: nothing here reads its nodes."""

    async def accepted(_: UnitOfWork, run: Any, __: int) -> Any:
        return run

    patch.setattr(queries, "accepted_detail", accepted)
    for module in (queries, retries):
        patch.setattr(module, "detail", queries.load_run)


class Faults:
    """What goes wrong, by chance, with the calls and transactions of tasks."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.on = True

    def strike(self, chance: float) -> bool:
        return self.on and self._random.random() < chance


class Task:
    """One thing that a process does, from step to step.

    Its coroutine is driven by hand: the event loop would pass several times for each step.
    """

    def __init__(self, name: str, faults: Faults, work: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self.faults = faults
        self.doomed = False
        """Its next transaction ends before it commits."""
        self.in_transaction = False
        self.execution: Any = None
        """The execution whose task it carries out, and the attempt."""
        self.place = "begins"
        self.done = False
        self.error: Exception | None = None
        """What it raised."""
        self._work = work
        self._context = copy_context()
        self._context.run(_CURRENT.set, self)

    async def go_on(self) -> None:
        """Do one step."""
        await self._until_it_stands(self._work.send, None)

    async def end(self) -> None:
        """Die where it stands."""
        if not self.done:
            await self._until_it_stands(self._work.throw, asyncio.CancelledError())
            assert self.done, f"{self.name} goes on after its end: {self.place}"

    async def _until_it_stands(self, resume: Callable[[Any], Any], value: Any) -> None:
        try:
            while (awaited := self._context.run(resume, value)) is not _STANDS:
                # It waits for something else: a new connection, or a task of its own.
                await _end_of(awaited, self)
                resume, value = self._work.send, None
        except StopIteration:
            self.done = True
        except asyncio.CancelledError:
            self.done = True
        except Exception as error:  # noqa: BLE001  # its caller reads it
            self.done, self.error = True, error


_CURRENT: ContextVar[Task | None] = ContextVar("current", default=None)
_STANDS = object()


@coroutine
def _stand() -> Generator[object, None, None]:
    yield _STANDS


async def step(place: str) -> None:
    """A place where a task stands until its next step, while others continue."""
    task = _CURRENT.get()
    if task is not None:
        task.place = place
        await _stand()


async def _end_of(awaited: asyncio.Future[Any] | None, task: Task) -> None:
    """Wait for a future on behalf of a task; nothing is a turn of the event loop."""
    if awaited is None:
        await asyncio.sleep(0)
        return
    awaited._asyncio_future_blocking = False
    if not (await asyncio.wait([awaited], timeout=BLOCKED_SECONDS))[0]:
        raise Violation(f"{task.name} waits for another at: {task.place}")


@asynccontextmanager
async def call_of_temporal() -> AsyncIterator[None]:
    """A call that may be lost on its way there, or on its way back."""
    task = _CURRENT.get()
    if task is None:
        yield
        return
    await step("calls Temporal")
    if task.faults.strike(0.08):
        raise RPCError("unavailable", RPCStatusCode.UNAVAILABLE, b"")
    yield
    if task.faults.strike(0.08):
        raise RPCError("deadline exceeded", RPCStatusCode.DEADLINE_EXCEEDED, b"")
    await step("has called Temporal")


class SteppedDatabase(Database):
    """A database whose transactions are steps of the task that makes them."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with _a_step(), super().transaction() as work:
            yield work
            _die_if_doomed()

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[SingleStatement]:
        async with _a_step(), super().statement() as work:
            _die_if_doomed()
            yield work


@asynccontextmanager
async def _a_step() -> AsyncIterator[None]:
    task = _CURRENT.get()
    if task is None:
        yield
        return
    if task.in_transaction:
        yield
        return
    await step("begins a transaction")
    task.in_transaction = True
    try:
        yield
    finally:
        task.in_transaction = False
    if task.faults.strike(0.02):
        # It is committed, and who made it does not know.
        raise psycopg.OperationalError("the connection is lost")
    await step("has committed")


def _die_if_doomed() -> None:
    task = _CURRENT.get()
    if task is not None and task.doomed:
        raise asyncio.CancelledError
