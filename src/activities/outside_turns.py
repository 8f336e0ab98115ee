"""The turns of calls that leave the machine, by the limits of their workspace (ADR 0099).

A call that has to wait for long ends its activity at once. Its workflow makes it again at the
moment it was told (`workflows/outside_calls.py`), and it stands in its line meanwhile.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from activities.database_errors import DATABASE_AWAY
from models.sources.outbound_limits import turns
from models.sources.outbound_limits.line import Call, Wait
from models.sources.outbound_limits.rules import LEASE, PAUSING
from runtime.callable_urls import canonical_host
from runtime.database import Database
from runtime.fairness import workspace_of
from runtime.families import Family
from runtime.outbound.messages import OutboundResponse
from runtime.outbound.turns import Caller, calling

log = structlog.get_logger()

HELD = "held"
"""The type of the error of a call that has to wait, not made.

It says the attempts made before, the seconds to wait, and the key of the call.
"""
PATIENCE_SECONDS = 2.0
"""The time that a call waits in its activity: less is not worth an event in a history."""
_PART = 0.1
"""The part of its time that an activity waits at most before what it calls first."""
_LOOK_SECONDS = 0.5
"""Until a call looks again that waits for another one to end."""
_SPEAK_SECONDS = LEASE.total_seconds() / 3

_FREE = {Family.DELIVERY.value}
"""Families whose calls have lines of their own (ADR 0070)."""
_STAYING = {Family.CHANGE_PLAN.value, Family.WORKSPACE_DRAFT.value}
"""Families that ask a model through a client which would make an error of every wait."""
_LOOKED_AT = {Family.PROVIDER_CALL.value}
"""Families of calls for whose answer a person waits."""


class CallHeldError(ApplicationError):
    """A call has to wait for its turn; no attempt is lost by it."""

    retryable = False

    def __init__(self, seconds: float, key: str) -> None:
        super().__init__(
            "The call waits for its turn.",
            activity.info().attempt - 1,
            seconds,
            key,
            type=HELD,
            non_retryable=True,
            category=ApplicationErrorCategory.BENIGN,
        )
        self.seconds = seconds


class OutsideTurns:
    """Asks PostgreSQL for the turn of each call."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait until the host may be called, and hold a place there in the block.

        Raises CallHeldError where that takes long.
        """
        caller = calling.get()
        if caller is None:
            yield
            return
        call = _call(caller, host)
        async with self._database.statement() as work:
            limited = await turns.is_limited(work, call)
        if not limited:
            yield
            return
        try:
            await self._wait(caller, call)
        except asyncio.CancelledError:
            # Nobody comes back for it: those behind it need not wait for its lease.
            await asyncio.shield(self._end(call))
            raise
        speaking = asyncio.create_task(self._speak_for(call))
        try:
            yield
        finally:
            speaking.cancel()
            await asyncio.shield(self._end(call))

    async def answered(self, answer: OutboundResponse) -> None:
        """Have all others of the workspace heed a `Retry-After`, too."""
        caller, seconds = calling.get(), answer.retry_after
        if caller is None or answer.status not in PAUSING or not seconds:
            return
        host = canonical_host(answer.host)
        async with _passing_over(), self._database.transaction() as work:
            await turns.put_off(work, caller.workspace_id, host, seconds)

    async def _wait(self, caller: Caller, call: Call) -> None:
        began, patience = time.monotonic(), _patience(caller)
        while wait := await self._ask(call):
            waited, seconds = time.monotonic() - began, wait.time.total_seconds()
            due = waited + seconds if wait.known else waited
            if due > patience:
                await self._leave(caller, call)
                return
            await asyncio.sleep(seconds if wait.known else _LOOK_SECONDS)

    async def _ask(self, call: Call) -> Wait:
        async with self._database.transaction() as work:
            return await turns.ask(work, call)

    async def _leave(self, caller: Caller, call: Call) -> None:
        """Raises CallHeldError, unless the turn has come just now."""
        async with self._database.transaction() as work:
            wait = await turns.ask_and_leave(work, call, caller.execution)
        if wait:
            raise CallHeldError(wait.time.total_seconds(), call.key)

    async def _speak_for(self, call: Call) -> None:
        while True:
            await asyncio.sleep(_SPEAK_SECONDS)
            async with _passing_over(), self._database.transaction() as work:
                await turns.keep(work, call)

    async def _end(self, call: Call) -> None:
        async with _passing_over(), self._database.transaction() as work:
            await turns.end(work, call)


@asynccontextmanager
async def _passing_over() -> AsyncIterator[None]:
    """Go on while the database is away: the call was made, and its place comes back by itself."""
    try:
        yield
    except DATABASE_AWAY as error:
        log.warning("the turn of a call could not be written", reason=type(error).__name__)


def _call(caller: Caller, host: str) -> Call:
    caller.calls += 1
    key = f"{caller.key}/{caller.calls}"
    name = canonical_host(host)
    # What stays cannot rest for as long as a pause lasts, and who tries a remedy looks at it.
    passes = _stays(caller) or _family(caller.execution) in _LOOKED_AT
    return Call(caller.workspace_id, caller.work_id, key, name, caller.connection_id, passes)


def _stays(caller: Caller) -> bool:
    """True for what waits in its activity: where it has called before it would begin anew."""
    return caller.calls > 1 or _family(caller.execution) in _STAYING


def _patience(caller: Caller) -> float:
    """The seconds that a call waits in its activity."""
    own = activity.info().start_to_close_timeout
    if _stays(caller):
        return float("inf")
    return PATIENCE_SECONDS if own is None else min(PATIENCE_SECONDS, own.total_seconds() * _PART)


class OutsideTurnInterceptor(Interceptor):
    """Lets calls know in whose name they are made."""

    @override
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        token = calling.set(_caller(activity.info(), input))
        try:
            return await super().execute_activity(input)
        finally:
            calling.reset(token)


def _caller(info: activity.Info, call: ExecuteActivityInput) -> Caller | None:
    workspace = workspace_of(info, call.headers)
    execution = info.workflow_id or ""
    if info.is_local or not workspace or _family(execution) in _FREE:
        return None
    # The same whenever a workflow makes the call again.
    made = repr((execution, info.activity_type, call.args))
    key = hashlib.sha256(made.encode()).hexdigest()[:32]
    return Caller(UUID(workspace), UUID(execution.split("/")[1]), execution, key)


def _family(execution: str) -> str:
    return execution.partition("/")[0]
