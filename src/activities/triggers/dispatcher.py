"""The dispatcher: carries events to the automations that listen to them (decisions D2).

Any number of dispatchers may run. Each turn is one transaction over events that nobody else holds;
one that dies in between leaves them as they were. Workspaces take turns.
"""

import time

from sqlalchemy import or_
from typing_extensions import override

from activities.poller import POLL_SECONDS, Poller
from models.automation.triggers.date_polls import poll_dates
from models.automation.triggers.debounce import start_debounced_runs
from models.automation.triggers.dispatch import (
    CHANGES_DUE,
    DATES_DUE,
    EVENTS_DUE,
    FIRST_WORKSPACE,
    Due,
    dispatch,
    what_is_due,
)
from runtime.database import Database
from runtime.fault_injection import FaultPoint, inject_fault


class Dispatcher(Poller):
    """Dispatches until it is stopped."""

    due = or_(EVENTS_DUE, CHANGES_DUE, DATES_DUE)

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._after = FIRST_WORKSPACE
        self._next_ask = 0.0

    @override
    async def turn(self) -> bool:
        """Answer some events, and once a second what time brings; False when there was nothing."""
        async with self._database.statement() as single:
            due = await what_is_due(single)
        busy = await self._dispatch(due)
        if time.monotonic() >= self._next_ask:
            found = await self._ask_time(due)
            self._next_ask = time.monotonic() + (0 if found else POLL_SECONDS)
            busy |= found
        return busy

    async def _dispatch(self, due: Due) -> bool:
        """Answer the events of the next workspaces; after the last ones come the first."""
        began = self._after
        if began == FIRST_WORKSPACE and not due.events:
            return False
        async with self._database.transaction() as work:
            events = await dispatch(work, began)
            if events:
                inject_fault(FaultPoint.DISPATCHED_BEFORE_COMMIT, events[0].event_id)
        if events:
            inject_fault(FaultPoint.DISPATCHED_AFTER_COMMIT, events[0].event_id)
        self._after = events[-1].workspace_id if events else FIRST_WORKSPACE
        return bool(events) or began != FIRST_WORKSPACE

    async def _ask_time(self, due: Due) -> bool:
        """Answer what time brought, a part at a time; events have their turn in between."""
        any_found = False
        if due.changes:
            async with self._database.transaction() as work:
                any_found = await start_debounced_runs(work) > 0
        if due.dates:
            async with self._database.transaction() as work:
                any_found |= await poll_dates(work)
        return any_found
