"""Countdowns and pomodoros, as a family of work: an execution ends each of them on time."""

from typing import Any, ClassVar, Protocol

from sqlalchemy import Select, func, select
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.maintenance.families import (
    MOST_RESTARTS,
    AbnormalEnd,
    Activities,
    Execution,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from activities.time_entries import TimerActivities
from models.data.time_entries.tables import TIME_ENTRIES, time_entry
from models.data.time_entries.writes import give_up_entry, restart_timer, signal_execution
from runtime.database import UnitOfWork
from runtime.temporal.families import Family, Queue
from workflows.time_entries import TimerDue

_entry = time_entry.c


class EntryRow(WorkRow, Protocol):
    """An entry that ends by itself, and whether it should have."""

    overdue: bool


class TimeEntries(WorkFamily[EntryRow]):
    """Entries that end by themselves. Terminating the execution does not stop the clock."""

    name, kind, row = "time_entries", TIME_ENTRIES, EntryRow
    workflows: ClassVar = {Family.TIMER_DUE: TimerDue}

    @override
    def activities(self, parts: Parts) -> Activities:
        return {Queue.AUTOMATION: [TimerActivities(parts.database).end_when_due]}

    @override
    def rows(self) -> Select[Any]:
        overdue = func.coalesce(_entry.due_at < func.now(), False).label("overdue")
        columns = (_entry.id, _entry.workspace_id, _entry.status, overdue)
        return select(*columns).where(TIME_ENTRIES.executed)

    @override
    def judge(self, row: EntryRow, latest: Execution | None) -> Verdict:
        if latest is None:
            return Verdict.RESTART
        if latest.status is WorkflowExecutionStatus.RUNNING:
            # It has not heard that its time has moved.
            return Verdict.RESTART if row.overdue and latest.sleeps else Verdict.LEAVE
        return Verdict.RESTART if latest.restarts < MOST_RESTARTS else Verdict.CLOSE

    @override
    async def restart(self, work: UnitOfWork, row: EntryRow, latest: Execution | None) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_execution(work, row.workspace_id, row.id)
        else:
            await restart_timer(work, row.workspace_id, row.id, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: EntryRow, end: AbnormalEnd) -> bool:
        del end
        async with context.database.transaction() as work:
            return await give_up_entry(work, row.id)
