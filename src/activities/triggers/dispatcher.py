"""The dispatcher: carries events to the automations that listen to them (decisions D2).

Any number of dispatchers may run. Each turn is one transaction over events that nobody else holds;
one that dies in between leaves them as they were. Workspaces take turns.
"""

import asyncio
import contextlib
import time

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from models.automation.triggers.date_polls import poll_dates
from models.automation.triggers.debounce import start_debounced_runs
from models.automation.triggers.dispatch import FIRST_WORKSPACE, any_due, dispatch
from runtime.database import Database
from runtime.fault_injection import FaultPoint, inject_fault

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""Seconds between two looks without a notification: for debounced changes, dates, lost ones."""


class Dispatcher:
    """Dispatches until stopped; `wake` makes it look at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wake = asyncio.Event()
        self._after = FIRST_WORKSPACE
        self._next_ask = 0.0

    def wake(self) -> None:
        """Look for new events now."""
        self._wake.set()

    async def run(self) -> None:
        """Dispatch for ever; an unreachable database only delays it."""
        while True:
            self._wake.clear()
            try:
                busy = await self.turn()
            except (psycopg.Error, DBAPIError, PoolTimeoutError):
                log.warning("events could not be dispatched", exc_info=True)
                await asyncio.sleep(POLL_SECONDS)
                continue
            except Exception:
                log.exception("dispatching failed")
                await asyncio.sleep(POLL_SECONDS)
                continue
            if not busy:
                # wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()

    async def turn(self) -> bool:
        """Answer some events, and once a second what time brings; False when there was nothing."""
        busy = await self._dispatch()
        if time.monotonic() >= self._next_ask:
            found = await self._ask_time()
            self._next_ask = time.monotonic() + (0 if found else POLL_SECONDS)
            busy |= found
        return busy

    async def _dispatch(self) -> bool:
        """Answer the events of the next workspaces; after the last ones come the first."""
        began = self._after
        if began == FIRST_WORKSPACE:
            # Most wake-ups are for the outbox alone.
            async with self._database.statement() as single:
                if not await any_due(single):
                    return False
        async with self._database.transaction() as work:
            events = await dispatch(work, began)
            if events:
                inject_fault(FaultPoint.DISPATCHED_BEFORE_COMMIT, events[0].event_id)
        if events:
            inject_fault(FaultPoint.DISPATCHED_AFTER_COMMIT, events[0].event_id)
        self._after = events[-1].workspace_id if events else FIRST_WORKSPACE
        return bool(events) or began != FIRST_WORKSPACE

    async def _ask_time(self) -> bool:
        """Answer what time brought, a part at a time; events have their turn in between."""
        async with self._database.transaction() as work:
            ended = await start_debounced_runs(work)
        async with self._database.transaction() as work:
            looked = await poll_dates(work)
        return ended > 0 or looked
