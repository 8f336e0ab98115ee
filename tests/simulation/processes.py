"""Processes whose every step is chosen: tasks that stop before and after each transaction and call.

The scenario lets a task do one step at a time, or ends it with its process. No task holds a lock or
a connection while it is stopped, so no step ever waits for another.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
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
from runtime.database import Database, SingleStatement, Transaction
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


class Faults:
    """What goes wrong, by chance, with the calls and transactions of tasks."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.on = True

    def strike(self, chance: float) -> bool:
        return self.on and self._random.random() < chance


class Task:
    """One thing that a process does, from step to step."""

    def __init__(self, name: str, faults: Faults, work: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self.faults = faults
        self.doomed = False
        """Its next transaction ends before it commits."""
        self.in_transaction = False
        self.execution: Any = None
        """The execution whose task it carries out, and the attempt."""
        self.place = "begins"
        self._idle = asyncio.Event()
        self._gate: asyncio.Future[None] | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(work))

    async def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        _CURRENT.set(self)
        try:
            await self.stand("begins")
            return await work
        finally:
            work.close()
            self._idle.set()

    async def stand(self, place: str) -> None:
        """Stop here until the next step."""
        self.place = place
        self._gate = asyncio.get_running_loop().create_future()
        self._idle.set()
        await self._gate

    @property
    def done(self) -> bool:
        return self._task.done()

    async def start(self) -> None:
        """Come to the first place to stop."""
        await self._until_idle()

    async def go_on(self) -> None:
        """Do one step."""
        assert self._gate is not None
        self._idle.clear()
        self._gate.set_result(None)
        await self._until_idle()

    async def end(self) -> None:
        """Die where it stands."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _until_idle(self) -> None:
        try:
            async with asyncio.timeout(BLOCKED_SECONDS):
                await self._idle.wait()
                if self._task.done() or self._gate is None or self._gate.done():
                    await asyncio.wait([self._task])
        except TimeoutError:
            raise Violation(f"{self.name} waits for another at: {self.place}") from None

    def result(self) -> Any:
        """What it came to; None for one that died. Raises what it raised."""
        return None if self._task.cancelled() else self._task.result()

    def error(self) -> BaseException | None:
        return None if self._task.cancelled() else self._task.exception()


_CURRENT: ContextVar[Task | None] = ContextVar("current", default=None)


async def step(place: str) -> None:
    """A place where a task may stop while others continue."""
    task = _CURRENT.get()
    if task is not None:
        await task.stand(place)


@asynccontextmanager
async def call_of_temporal() -> AsyncIterator[None]:
    """A call that may be lost on its way there, or on its way back."""
    task = _CURRENT.get()
    if task is None:
        yield
        return
    await task.stand("calls Temporal")
    if task.faults.strike(0.08):
        raise RPCError("unavailable", RPCStatusCode.UNAVAILABLE, b"")
    yield
    if task.faults.strike(0.08):
        raise RPCError("deadline exceeded", RPCStatusCode.DEADLINE_EXCEEDED, b"")
    await task.stand("has called Temporal")


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
    await task.stand("begins a transaction")
    task.in_transaction = True
    try:
        yield
    finally:
        task.in_transaction = False
    if task.faults.strike(0.02):
        # It is committed, and who made it does not know.
        raise psycopg.OperationalError("the connection is lost")
    await task.stand("has committed")


def _die_if_doomed() -> None:
    task = _CURRENT.get()
    if task is not None and task.doomed:
        raise asyncio.CancelledError
