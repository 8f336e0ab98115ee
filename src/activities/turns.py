"""Turns of activities: at a lock or a process, at slots of a queue, at outbound limits."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from activities.database_errors import DATABASE_AWAY
from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass
from models.sources.outbound_limits import turns
from models.sources.outbound_limits.rules import LEASE, PAUSING
from runtime.database import Database
from runtime.outbound.client import Caller, calling
from runtime.outbound.messages import OutboundResponse
from runtime.outbound_policy import canonical_host
from runtime.temporal.executions import execution_of, workspace_of
from runtime.temporal.workflow_kinds import WorkflowKind

POSTPONED = "postponed"
"""The type of the error of a node that has not begun; it says the attempts made before.

Its workflow tries again after a while.
"""
PATIENCE_SECONDS = 2.0
"""Until a transaction makes room in its worker, and between two heartbeats of all others."""

_NODE_PART = 0.1
"""The share of its time that a node waits at most: the rest is for its call."""
_CALLING = frozenset(kind for kind, spec in NODE_KINDS.items() if spec.cost is CostClass.OUTSIDE)


async def waited(future: "asyncio.Future[Any]", reason: str) -> None:
    """Wait until a future is done, with heartbeats, for as long as the activity may wait.

    Raises ApplicationError, for the reason, when it may wait no longer. No attempt is lost by it.
    """
    info = activity.info()
    while not (await asyncio.wait({future}, timeout=_node_patience(info)))[0]:
        if info.is_local:
            pause = timedelta(seconds=PATIENCE_SECONDS)
            raise ApplicationError(reason, type=POSTPONED, next_retry_delay=pause)
        if info.activity_type in _CALLING:
            raise ApplicationError(reason, info.attempt - 1, type=POSTPONED, non_retryable=True)
        activity.heartbeat(*info.heartbeat_details)


def _node_patience(info: activity.Info) -> float:
    own = info.start_to_close_timeout
    if own is None or info.activity_type not in _CALLING:
        return PATIENCE_SECONDS
    return min(PATIENCE_SECONDS, own.total_seconds() * _NODE_PART)


@asynccontextmanager
async def turn(lock: asyncio.Lock, reason: str) -> AsyncIterator[None]:
    """Hold a lock that is waited for as `waited` says."""
    taking = asyncio.ensure_future(lock.acquire())
    try:
        await waited(taking, reason)
    except BaseException:
        # A lock that was acquired meanwhile cannot be cancelled: it would be held for ever.
        if not taking.cancel():
            lock.release()
        raise
    try:
        yield
    finally:
        lock.release()


OVERFLOWED = "overflowed"
"""The type of the error of a call over a share, not begun; it says the attempts made before."""
OVERFLOW_PAUSE = timedelta(seconds=2)


class SlotShares:
    """The slots of one queue in one process, by workspace.

    A workspace takes one while it holds fewer than are free. So one that asks slow servers holds
    half of the slots at most, a second one half of the rest, and a slot is free for the next one.
    Calls over a share go to another queue, where they wait (ADR 0075).
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._held = Counter[str]()

    @contextmanager
    def slot(self, workspace: str) -> Iterator[bool]:
        """Hold a slot in the block; False where the workspace holds its share."""
        within = self._held[workspace] < self._slots - self._held.total()
        if within:
            self._held[workspace] += 1
        try:
            yield within
        finally:
            if within:
                self._held[workspace] -= 1
                if not self._held[workspace]:
                    # A worker sees many workspaces in its life.
                    del self._held[workspace]


class SlotShareInterceptor(Interceptor):
    """Sends calls over the share of their workspace away."""

    def __init__(self, slots: int) -> None:
        self._shares = SlotShares(slots)

    @override
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _SlotShareInbound(next, self._shares)


class _SlotShareInbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, shares: SlotShares) -> None:
        super().__init__(following)
        self._shares = shares

    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        workspace = workspace_of(info, input.headers)
        if info.is_local or not workspace:
            return await super().execute_activity(input)
        with self._shares.slot(workspace) as within:
            if not within:
                # A call that no workflow could send to the other queue is due again after a pause.
                alone = info.workflow_id is None
                raise ApplicationError(
                    "The workspace uses its share of the slots.",
                    info.attempt - 1,
                    type=OVERFLOWED,
                    non_retryable=not alone,
                    next_retry_delay=OVERFLOW_PAUSE if alone else None,
                    category=ApplicationErrorCategory.BENIGN,
                )
            return await super().execute_activity(input)


log = structlog.get_logger()

HELD = "held"
"""The type of the error of a call that has to wait, not made.

It says the attempts made before, the seconds to wait, and the key of the call.
"""

CALL_PATIENCE_SECONDS = 2.0
"""The time that a call waits in its activity: less is not worth an event in a history."""

_CALL_PART = 0.1
"""The part of its time that an activity waits at most before what it calls first."""
_LOOK_SECONDS = 0.5
"""Until a call looks again that waits for another one to end."""
_SPEAK_SECONDS = LEASE.total_seconds() / 3

_FREE = {WorkflowKind.DELIVERY.value}
"""Workflow kinds whose calls have lines of their own (ADR 0070)."""
_STAYING = {WorkflowKind.CHANGE_PLAN.value, WorkflowKind.WORKSPACE_DRAFT.value}
"""Workflow kinds that ask a model through a client which would make an error of every wait."""
_LOOKED_AT = {WorkflowKind.PROVIDER_CALL.value}
"""Workflow kinds of calls for whose answer a person waits."""


class CallHeldError(ApplicationError):
    """A call has to wait for its turn; no attempt is lost by it."""

    retryable = False

    def __init__(self, seconds: float, key: str) -> None:
        super().__init__(
            "Waiting for an outbound limit.",
            activity.info().attempt - 1,
            seconds,
            key,
            type=HELD,
            non_retryable=True,
            category=ApplicationErrorCategory.BENIGN,
        )
        self.seconds = seconds


class OutsideTurns:
    """Asks PostgreSQL for the turn of each call.

    A call that has to wait for long ends its activity at once. Its workflow repeats it at the
    returned time (`workflows/calls.py`), and its place in line is kept.
    """

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
        # Most hosts have no limit, which one statement without a transaction finds out.
        async with self._database.statement() as work:
            limited = await turns.is_limited(work, call)
        if not limited:
            yield
            return
        try:
            await self._wait(caller, call)
        except asyncio.CancelledError:
            # A cancelled call is not tried again: the calls behind it need not wait for its lease.
            await asyncio.shield(self._end(call))
            raise
        speaking = asyncio.create_task(self._speak_for(call))
        try:
            yield
        finally:
            # Before the end: a lease renewed after it would hold the place of a call that is over.
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

    async def _wait(self, caller: Caller, call: turns.Call) -> None:
        began, patience = time.monotonic(), _call_patience(caller)
        while wait := await self._ask(call):
            waited, seconds = time.monotonic() - began, wait.time.total_seconds()
            due = waited + seconds if wait.known else waited
            if due > patience:
                await self._leave(caller, call)
                return
            await asyncio.sleep(seconds if wait.known else _LOOK_SECONDS)

    async def _ask(self, call: turns.Call) -> turns.Wait:
        async with self._database.transaction() as work:
            return await turns.ask(work, call)

    async def _leave(self, caller: Caller, call: turns.Call) -> None:
        """Raises CallHeldError, unless the turn has come just now."""
        async with self._database.transaction() as work:
            wait = await turns.ask_and_leave(work, call, caller.execution)
        if wait:
            raise CallHeldError(wait.time.total_seconds(), call.key)

    async def _speak_for(self, call: turns.Call) -> None:
        while True:
            await asyncio.sleep(_SPEAK_SECONDS)
            async with _passing_over(), self._database.transaction() as work:
                await turns.keep(work, call)

    async def _end(self, call: turns.Call) -> None:
        async with _passing_over(), self._database.transaction() as work:
            await turns.end(work, call)


@asynccontextmanager
async def _passing_over() -> AsyncIterator[None]:
    """Continue while the database is away: the call was made, and its place expires by itself."""
    try:
        yield
    except DATABASE_AWAY as error:
        log.warning("the turn of a call could not be written", reason=type(error).__name__)


def _call(caller: Caller, host: str) -> turns.Call:
    caller.calls += 1
    key = f"{caller.key}/{caller.calls}"
    name = canonical_host(host)
    # A call that waits in its activity cannot outlast a pause, and a person watches those in
    # _LOOKED_AT.
    passes = _stays(caller) or _workflow_kind(caller.execution) in _LOOKED_AT
    return turns.Call(caller.workspace_id, caller.work_id, key, name, caller.connection_id, passes)


def _stays(caller: Caller) -> bool:
    """True for a call that waits in its activity, because a repetition would repeat its earlier
    calls.
    """
    return caller.calls > 1 or _workflow_kind(caller.execution) in _STAYING


def _call_patience(caller: Caller) -> float:
    """The seconds that a call waits in its activity."""
    own = activity.info().start_to_close_timeout
    if _stays(caller):
        return float("inf")
    return (
        CALL_PATIENCE_SECONDS
        if own is None
        else min(CALL_PATIENCE_SECONDS, own.total_seconds() * _CALL_PART)
    )


class OutsideTurnInterceptor(Interceptor):
    """Lets calls know in whose name they are made."""

    @override
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _OutsideTurnInbound(next)


class _OutsideTurnInbound(ActivityInboundInterceptor):
    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        token = calling.set(_caller(activity.info(), input))
        try:
            return await super().execute_activity(input)
        finally:
            calling.reset(token)


def _caller(info: activity.Info, call: ExecuteActivityInput) -> Caller | None:
    workspace = workspace_of(info, call.headers)
    execution = execution_of(info)
    if info.is_local or not workspace or _workflow_kind(execution) in _FREE:
        return None
    # The same whenever a workflow makes the call again.
    made = repr((execution, info.activity_type, call.args))
    key = hashlib.sha256(made.encode()).hexdigest()[:32]
    return Caller(UUID(workspace), UUID(execution.split("/")[1]), execution, key)


def _workflow_kind(execution: str) -> str:
    return execution.partition("/")[0]
