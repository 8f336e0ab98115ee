"""The work of each family that a workspace has under way, to which a claim adds.

Automation runs count while they run. Other work counts from the moment at which its start is
claimed, which its row keeps, until it is closed.
"""

from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    CompoundSelect,
    Select,
    TextClause,
    Update,
    case,
    func,
    literal,
    select,
    text,
    union_all,
    update,
)

from models.automation.action_runs.tables import ACTION_RUNS
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.core.lifecycle.commands import WorkTable
from models.messages.jobs.tables import JOBS, job
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, data_source_run
from runtime.families import Family
from runtime.outbox import Intent
from runtime.schema import listed

_COUNTED: tuple[tuple[WorkTable, ColumnElement[str]], ...] = (
    (JOBS, job.c.family),
    (ACTION_RUNS, literal(Family.ACTION_RUN.value)),
    (
        DATA_SOURCE_RUNS,
        case(
            (data_source_run.c.data_source_id.is_(None), Family.SPREADSHEET_IMPORT.value),
            else_=Family.DATA_SOURCE_REFRESH.value,
        ),
    ),
)
"""The tables of counted work, and the family of a row."""


def under_way() -> CompoundSelect[Any]:
    """The number of each family of each workspace that has any."""
    running = automation_run.c.status == RunStatus.RUNNING.value
    runs = _numbers(automation_run, literal(Family.AUTOMATION_RUN.value)).where(running)
    return union_all(
        runs,
        *(
            _numbers(kind.table, family).where(kind.table.c.dispatched_at.is_not(None), _open(kind))
            for kind, family in _COUNTED
        ),
    )


def _open(kind: WorkTable) -> TextClause:
    """Written out as the index has it, which a prepared statement uses for nothing else."""
    return text(f"{kind.table.name}.status IN ({listed(kind.lifecycle.open)})")


def _numbers(table: Any, family: ColumnElement[str]) -> Select[Any]:
    named = family.label("family")
    return select(table.c.workspace_id, named, func.count().label("number")).group_by(
        table.c.workspace_id, named
    )


def dispatching(claimed: CTE) -> list[Update]:
    """Count the work whose starts are among these rows of the outbox.

    A row that is locked is about to be closed, or had begun before.
    """
    starts = select(claimed.c.subject_id).where(claimed.c.intent == Intent.START)
    return [_dispatching(kind.table, starts) for kind, _ in _COUNTED]


def _dispatching(table: Any, starts: Select[Any]) -> Update:
    these = (
        select(table.c.id)
        .where(table.c.id.in_(starts), table.c.dispatched_at.is_(None))
        .with_for_update(of=table, skip_locked=True)
    )
    return update(table).where(table.c.id.in_(these)).values(dispatched_at=func.now())
