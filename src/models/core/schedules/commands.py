"""The schedules as our rows have them, and the intents that make Temporal follow.

The schedule itself is in Temporal. A command that changes its rows calls `follow` or `announce` in
the same transaction; the delivery of the intent makes the two agree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.core.base import Id
from models.core.schedules.timetables import DesiredSchedule, PassedOverCounts
from runtime.database import UnitOfWork
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind


@dataclass(frozen=True, slots=True)
class ScheduleTable:
    """A table whose rows may have a schedule.

    It has the columns `id`, `workspace_id`, `next_run_at`, `skipped_fires` and `missed_fires`.
    `rows` selects, with its `id`, each row that should have a schedule, and `read` says which.
    `may_have` is the condition of rows that have one in Temporal, or had one that may be there.
    """

    table: sa.Table
    workflow_kind: WorkflowKind
    rows: sa.Select[Any]
    read: Callable[[Any], DesiredSchedule]
    may_have: sa.ColumnElement[bool]


class ScheduledRow(Protocol):
    """A row of `all_scheduled`, which `ScheduleTable.read` reads."""

    id: Id


async def scheduled(
    work: UnitOfWork, kind: ScheduleTable, subject_id: Id
) -> DesiredSchedule | None:
    """The schedule a subject should have; None when it should have none."""
    row = await work.first(kind.rows.where(kind.table.c.id == subject_id))
    return None if row is None else kind.read(row)


async def all_scheduled(
    work: UnitOfWork, kind: ScheduleTable, after: Id | None, limit: int
) -> Sequence[ScheduledRow]:
    """The rows that should have a schedule, by id behind `after`."""
    statement = kind.rows.order_by(kind.table.c.id).limit(limit)
    if after is not None:
        statement = statement.where(kind.table.c.id > after)
    return await work.rows(statement, of=ScheduledRow)


async def follow(
    work: UnitOfWork, kind: ScheduleTable, subject_id: Id, *, had_one: bool = False
) -> None:
    """Update the schedule of a subject whose row the caller has locked and may have changed.

    `had_one` says that it may have had a schedule which the row does not show any more.
    """
    if await announce(work, kind, kind.table.c.id == subject_id, had_one=had_one):
        schedule = await scheduled(work, kind, subject_id)
        due = None if schedule is None else schedule.next_after(work.now)
        await set_next_run(work, kind, subject_id, due)


async def announce(
    work: UnitOfWork,
    kind: ScheduleTable,
    condition: sa.ColumnElement[bool],
    *,
    had_one: bool = False,
) -> int:
    """Update the schedules of subjects whose rows the caller has not locked.

    Returns the number of subjects with a schedule. The delivery writes when they run next.
    """
    statement = sa.select(kind.table.c.id, kind.table.c.workspace_id).where(condition)
    rows = await work.rows(statement if had_one else statement.where(kind.may_have))
    intents: list[outbox.IntentArguments] = [
        {
            "intent": outbox.Intent.SCHEDULE,
            "workflow_kind": kind.workflow_kind,
            "workspace_id": row.workspace_id,
            "subject_id": row.id,
        }
        for row in rows
    ]
    await outbox.append_all(work, intents)
    return len(intents)


async def set_next_run(
    work: UnitOfWork, kind: ScheduleTable, subject_id: Id, due: datetime | None
) -> None:
    next_run_at = kind.table.c.next_run_at
    await work.execute(
        sa.update(kind.table)
        .where(kind.table.c.id == subject_id, next_run_at.is_distinct_from(due))
        .values(next_run_at=due)
    )


async def set_passed_over(
    work: UnitOfWork, kind: ScheduleTable, subject_id: Id, counts: PassedOverCounts
) -> None:
    """Show the number of due times of the schedule that had no run."""
    await work.execute(
        sa.update(kind.table)
        .where(kind.table.c.id == subject_id)
        .values(skipped_fires=counts.skipped, missed_fires=counts.missed)
    )
