"""The reconciler: rows and executions that drifted apart are brought together (promise I7).

It knows families of work as `families.WorkFamily`. Temporal is asked about each open
row by `describe`, which is strongly consistent; the row under its lock decides.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import ColumnElement, Select, exists, func, select
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

from activities.maintenance.executions import Execution, describe_execution
from activities.maintenance.families import (
    AbnormalEnd,
    EndKind,
    RowT,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
)
from activities.maintenance.orphans import end_orphans
from models.core.base import Id
from models.core.pauses.resting import rests
from runtime.database import Database
from runtime.outbox import Intent, outbox

log = structlog.get_logger()

GRACE = timedelta(seconds=20)
"""A row or execution younger than this is still on its way."""
BATCH = 500
"""Rows read at once."""
POISONED = 5
"""Tries of one workflow task after which work is reported: code must change, or be put back."""

_ENDS = {
    WorkflowExecutionStatus.CANCELED: AbnormalEnd(EndKind.CANCELLED, "Cancelled in Temporal."),
    WorkflowExecutionStatus.TERMINATED: AbnormalEnd(EndKind.FAILED, "Terminated in Temporal."),
    WorkflowExecutionStatus.TIMED_OUT: AbnormalEnd(EndKind.TIMED_OUT, "The execution timed out."),
    WorkflowExecutionStatus.COMPLETED: AbnormalEnd(
        EndKind.FAILED, "The execution ended without writing its result."
    ),
}
_DIED = AbnormalEnd(EndKind.FAILED, "The execution failed.")
_GONE = AbnormalEnd(EndKind.FAILED, "The execution is gone from Temporal.")
"""For families that cannot go on from their rows."""

_REPAIRS = ("restarted", "closed", "poisoned")


class Reconciler:
    """Sweeps over the open rows of all registered families."""

    def __init__(
        self,
        database: Database,
        client: Client,
        families: Sequence[WorkFamily[Any]],
        *,
        grace: timedelta = GRACE,
        batch: int = BATCH,
    ) -> None:
        self._context = SweepContext(database, client, grace)
        self._families = families
        self._batch = batch
        before = func.now() - grace
        self._look = select(*(_open(each, before).exists().label(each.name) for each in families))

    @activity.defn(name="reconcile_open_work")
    async def reconcile(self) -> dict[str, int]:
        """One sweep: how often each repair of each family was made.

        Safe to repeat: every repair is a conditional update or idempotent by id.
        """
        counts: dict[str, int] = {}
        # Mostly none has such rows, which one statement tells.
        async with self._context.database.reading() as work:
            (have_rows,) = await work.rows(self._look)
        for family, has_rows in zip(self._families, have_rows, strict=True):
            swept = await self._sweep(family, has_rows=has_rows)
            counts |= {f"{family.name}_{repair}": count for repair, count in swept.items()}
        terminated = await end_orphans(self._context, self._families)
        return counts | {f"{name}_terminated": count for name, count in terminated.items()}

    async def _sweep(self, family: WorkFamily[RowT], *, has_rows: bool) -> dict[str, int]:
        counts = dict.fromkeys(_REPAIRS, 0)
        async for row in self._open_rows(family, has_rows=has_rows):
            try:
                action = await self.repair(family, row)
            except Exception:
                # One row's trouble must not keep the sweep from the others.
                log.exception("a row could not be reconciled", id=str(row.id))
                continue
            if action is not None:
                counts[action] += 1
        for name, repair in family.extras(self._context).items():
            counts[name] = await repair()
        return counts

    async def _open_rows(self, family: WorkFamily[RowT], *, has_rows: bool) -> AsyncIterator[RowT]:
        last: Id | None = None
        while has_rows and (rows := await self._open_rows_after(family, last)):
            for row in rows:
                yield row
            last = rows[-1].id

    async def _open_rows_after(self, family: WorkFamily[RowT], last: Id | None) -> Sequence[RowT]:
        """The next open rows in the order of their ids, none when there are no more."""
        async with self._context.database.reading() as work:
            id_ = family.kind.table.c.id
            before = work.now - self._context.grace
            statement = _open(family, before).order_by(id_).limit(self._batch)
            if last is not None:
                statement = statement.where(id_ > last)
            return await work.rows(statement, of=family.row)

    async def repair(self, family: WorkFamily[RowT], row: RowT) -> str | None:
        """Make a row and its execution agree; what was done, None for nothing."""
        reason = family.abandoned(row)
        if reason is not None:
            return await self._close(family, row, AbnormalEnd(EndKind.CANCELLED, reason))
        execution = await describe_execution(self._context.client, family.workflow_id(row))
        match family.judge(row, execution):
            case Verdict.RESTART:
                async with self._context.database.transaction() as work:
                    await family.restart(work, row, execution)
                return "restarted"
            case Verdict.CLOSE:
                end = _GONE if execution is None else _ENDS.get(execution.status, _DIED)
                return await self._close(family, row, end)
            case _:
                return None if execution is None else _poisoned(row, execution)

    async def _close(self, family: WorkFamily[RowT], row: RowT, end: AbnormalEnd) -> str | None:
        return "closed" if await family.close(self._context, row, end) else None


def _open(family: WorkFamily[Any], before: datetime | ColumnElement[datetime]) -> Select[Any]:
    """The open rows accepted before a moment, of which no start is on its way or at rest."""
    kind, columns = family.kind, family.kind.table.c
    undelivered = exists().where(outbox.c.subject_id == columns.id, outbox.c.intent == Intent.START)
    return family.rows().where(
        kind.is_open, columns[kind.accepted_column] < before, ~undelivered, ~rests(columns.id)
    )


def _poisoned(row: WorkRow, found: Execution) -> str | None:
    """Report work whose workflow task fails again and again; it goes on when its code can."""
    if found.attempt < POISONED:
        return None
    log.error("a workflow task keeps failing", id=str(row.id), attempt=found.attempt)
    return "poisoned"
