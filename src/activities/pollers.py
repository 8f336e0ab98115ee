"""Loops of a worker, and its pollers: one statement a second finds the due work of all of them.

Any number of each poller may run side by side.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import psycopg
import sqlalchemy as sa
import structlog
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from typing_extensions import override

from models.automation.circuit_breakers import BREAKER_DUE, advance_breaker
from models.automation.incidents.grouping import FAILURES_DUE, group_failures
from models.automation.triggers import dispatch as trigger_dispatch
from models.automation.triggers.record_dates import poll_dates
from models.core.pauses.store import PAUSE_DUE, attend_next_pause
from models.messages.deliveries.lines import STARTS_DUE, start_deliveries, workspaces_to_start
from models.messages.webhook_endpoints import deliveries as endpoint_deliveries
from runtime.clock import wait_until_set
from runtime.database import Database
from runtime.postgresql.statements import PreparedStatement
from runtime.processes.fault_injection import FaultPoint, inject_fault

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
    def due(self) -> sa.ColumnElement[bool]:
        """True in PostgreSQL while there may be something to do, and cheap to ask."""

    @property
    def prompt(self) -> bool:
        """True when a look after a notification asks for it, not only that of each second."""

    def wake(self) -> None:
        """Look for rows now."""


class Poller(Loop):
    """Takes turns from the moment it is woken until one finds nothing."""

    due: ClassVar[sa.ColumnElement[bool]]
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
        # Before the first turn: a wake during it must lead to another one.
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
                sa.select(
                    *(one.due.label(f"due_{n}") for n, one in enumerate(self._asked(notified)))
                )
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
        left = max(0, self._timed_look - time.monotonic())
        # A timer may end a little early, so the time alone does not say why this woke up.
        notified = (
            await wait_until_set(self._notified, left) and time.monotonic() < self._timed_look
        )
        if not notified:
            self._timed_look = time.monotonic() + POLL_SECONDS
        # Before the look: a notification that comes during it must lead to another one.
        self._notified.clear()
        async with self._database.statement() as single:
            (row,) = await self._statements[notified].rows(single, {})
        for poller, due in zip(self._asked(notified), row, strict=True):
            if due:
                poller.wake()
        await asyncio.sleep(SPACING_SECONDS)

    def _asked(self, notified: bool) -> Sequence[DueWork]:
        return self._prompt if notified else self._pollers


class Dispatcher(Poller):
    """Dispatches until it is stopped.

    Each turn is one transaction over events that no other process holds; one that dies in between
    leaves them as they were. Workspaces take turns.
    """

    due = sa.or_(
        trigger_dispatch.EVENTS_DUE, trigger_dispatch.CHANGES_DUE, trigger_dispatch.DATES_DUE
    )

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._after = trigger_dispatch.FIRST_WORKSPACE
        self._next_ask = 0.0

    @override
    async def turn(self) -> bool:
        """Answer some events, and once a second what time brings; False when there was nothing."""
        async with self._database.statement() as single:
            due = await trigger_dispatch.what_is_due(single)
        busy = await self._dispatch(due)
        if time.monotonic() >= self._next_ask:
            found = await self._ask_time(due)
            # A part that was found may have left more, which need not wait for a second.
            self._next_ask = time.monotonic() + (0 if found else POLL_SECONDS)
            busy |= found
        return busy

    async def _dispatch(self, due: trigger_dispatch.Due) -> bool:
        """Answer the events of the next workspaces; after the last ones come the first."""
        began = self._after
        if began == trigger_dispatch.FIRST_WORKSPACE and not due.events:
            return False
        async with self._database.transaction() as work:
            events = await trigger_dispatch.dispatch(work, began)
            if events:
                inject_fault(FaultPoint.DISPATCHED_BEFORE_COMMIT, events[0].event_id)
        if events:
            inject_fault(FaultPoint.DISPATCHED_AFTER_COMMIT, events[0].event_id)
        self._after = events[-1].workspace_id if events else trigger_dispatch.FIRST_WORKSPACE
        return bool(events) or began != trigger_dispatch.FIRST_WORKSPACE

    async def _ask_time(self, due: trigger_dispatch.Due) -> bool:
        """Answer what time brought, a part at a time; events have their turn in between."""
        any_found = False
        if due.changes:
            async with self._database.transaction() as work:
                any_found = await trigger_dispatch.start_debounced_runs(work) > 0
        if due.dates:
            async with self._database.transaction() as work:
                any_found |= await poll_dates(work)
        return any_found


class WebhookFanOut(Poller):
    """Makes deliveries until it is stopped.

    Each turn locks the endpoints it serves, and leaves the others.
    """

    due = endpoint_deliveries.ENDPOINTS_BEHIND
    prompt = False

    @override
    async def turn(self) -> bool:
        """Notify the endpoints that are behind; False when there were none."""
        busy, after = False, endpoint_deliveries.FIRST_WORKSPACE
        while True:
            async with self._database.statement() as single:
                workspaces = await endpoint_deliveries.workspaces_behind(single, after)
            for workspace_id in workspaces:
                async with self._database.transaction() as work:
                    busy |= await endpoint_deliveries.make_deliveries(work, workspace_id) > 0
            if len(workspaces) < endpoint_deliveries.MOST_WORKSPACES:
                return busy
            after = workspaces[-1]


class DeliveryStarter(Poller):
    """Starts deliveries until it is stopped.

    Each turn serves a workspace alone, and leaves the ones another serves.
    """

    due = STARTS_DUE

    @override
    async def turn(self) -> bool:
        """Start due deliveries where there is room; False when none was due."""
        async with self._database.statement() as single:
            workspaces = await workspaces_to_start(single)
        started = 0
        for workspace_id in workspaces:
            async with self._database.transaction() as work:
                started += await start_deliveries(work, workspace_id)
        return started > 0


class PausePoller(Poller):
    """Moves pauses and circuit breakers on until it is stopped.

    Each turn takes a pause and a breaker that no other has taken.
    """

    due = sa.or_(PAUSE_DUE, BREAKER_DUE)

    @override
    async def turn(self) -> bool:
        """Do the next part of a pause and of a breaker that are due; False when none is."""
        async with self._database.transaction() as work:
            attended = await attend_next_pause(work)
        async with self._database.transaction() as work:
            return await advance_breaker(work) or attended


class FailureGrouping(Poller):
    """Groups failed runs until it is stopped.

    Each turn takes notes that no other has taken.
    """

    due = FAILURES_DUE
    prompt = False

    @override
    async def turn(self) -> bool:
        """Group some of the runs that failed; False when there were none."""
        async with self._database.transaction() as work:
            return await group_failures(work) > 0
