"""Making the schedules in Temporal what our rows say (decisions D2 "Schedules").

A delivery carries no state of its own: it reads the rows and writes the difference, so any number
of them in any order ends right.
"""

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.outbox.deliveries import Route
from activities.schedules.families import SCHEDULES, subject_of
from activities.schedules.specs import attributes_of, schedule_of
from models.core.schedules.commands import scheduled, set_next_run, set_passed_over
from models.core.schedules.desired import DesiredSchedule, PassedOver
from runtime.clock import utc_now
from runtime.database import Database
from runtime.families import Family
from runtime.outbox import Outbox

_TIMEOUT = timedelta(seconds=5)


class Schedules:
    """Creates, updates, pauses and deletes the schedules of every family."""

    def __init__(self, database: Database, client: Client, route: Route) -> None:
        self._database = database
        self._client = client
        self._route = route

    async def deliver(self, row: Outbox) -> None:
        """Deliver an intent of the outbox."""
        await self.synchronize(Family(row.family).workflow_id(row.subject_id))

    async def synchronize(self, schedule_id: str) -> None:
        """Make a schedule what the rows say, and show there what it does.

        The rows are read again after every write: whoever writes last has read what is true.
        """
        wanted = await self._read(schedule_id)
        while True:
            await self._write(schedule_id, wanted)
            written, wanted = wanted, await self._read(schedule_id)
            if wanted == written:
                return

    async def _read(self, schedule_id: str) -> DesiredSchedule | None:
        family, subject_id = subject_of(schedule_id)
        kind = SCHEDULES[family].kind
        async with self._database.transaction() as work:
            found = await scheduled(work, kind, subject_id)
            due = None if found is None else found.next_after(work.now)
            await set_next_run(work, kind, subject_id, due)
        return found

    async def _write(self, schedule_id: str, wanted: DesiredSchedule | None) -> None:
        handle = self._client.get_schedule_handle(schedule_id)
        try:
            if wanted is None:
                await handle.delete(rpc_timeout=_TIMEOUT)
            else:
                await self._update(handle, wanted)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            if wanted is not None:
                await self._create(wanted)

    async def _update(self, handle: ScheduleHandle, wanted: DesiredSchedule) -> None:
        counts: list[PassedOver] = []

        async def difference(update: ScheduleUpdateInput) -> ScheduleUpdate | None:
            info = update.description.info
            counts[:] = [
                PassedOver(info.num_actions_skipped_overlap, info.num_actions_missed_catchup_window)
            ]
            return await self._difference(update.description.schedule, wanted)

        await handle.update(difference, rpc_timeout=_TIMEOUT)
        if counts != [wanted.passed_over]:
            kind = SCHEDULES[wanted.family].kind
            async with self._database.transaction() as work:
                await set_passed_over(work, kind, wanted.subject_id, counts[0])

    async def _create(self, wanted: DesiredSchedule) -> None:
        """Make a schedule that is not there; one that will never fire again needs none.

        Temporal itself removes such a schedule after some days.
        """
        if wanted.timing.timetable.next_after(utc_now()) is None:
            return
        with contextlib.suppress(ScheduleAlreadyRunningError):
            await self._client.create_schedule(
                wanted.schedule_id,
                schedule_of(wanted, self._route, utc_now()),
                search_attributes=attributes_of(wanted),
                rpc_timeout=_TIMEOUT,
            )

    async def _difference(self, found: Schedule, wanted: DesiredSchedule) -> ScheduleUpdate | None:
        """An update, or None for a schedule that is as it should be.

        Temporal drops what is due between its last look and an update: none is made idly.
        """
        schedule = schedule_of(wanted, self._route, utc_now())
        same = _parts(found, await self._texts(found)) == _parts(
            schedule, _encoded_arguments(schedule)
        )
        return None if same else ScheduleUpdate(schedule)

    async def _texts(self, described: Schedule) -> Sequence[Any]:
        return await self._client.data_converter.decode(_encoded_arguments(described))


def _encoded_arguments(schedule: Schedule) -> list[Any]:
    """The argument and the summary of the workflow, which Temporal keeps encoded."""
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow), "Temporal knows no other action"
    return [*action.args, *([] if action.static_summary is None else [action.static_summary])]


def _parts(schedule: Schedule, texts: Sequence[Any]) -> tuple[Any, ...]:
    """Everything about a schedule that is ours to decide, comparable."""
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow), "Temporal knows no other action"
    started = (action.workflow, action.id, action.task_queue, action.priority)
    return (schedule.spec, schedule.policy, schedule.state, started, list(texts))
