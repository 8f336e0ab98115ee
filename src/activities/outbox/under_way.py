"""The work of each family that a workspace has under way, to which a claim adds.

Automation runs count while they run. Other work counts from the moment at which its start is
claimed, which its row keeps, until it is closed.
"""

from typing import Any

from sqlalchemy import (
    CTE,
    CompoundSelect,
    Select,
    Table,
    TextClause,
    Update,
    func,
    select,
    text,
    union_all,
    update,
)

from models.automation.automation_runs.lifecycle import AUTOMATION_RUNS
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.core.lifecycle.commands import WorkTable, executed_tables
from models.tables import metadata
from runtime.id_lookup import is_among
from runtime.outbox import Intent
from runtime.schema import listed

_COUNTED = [kind for kind in executed_tables(metadata) if kind.takes_places]


def under_way() -> CompoundSelect[Any]:
    """The number of each family of each workspace that has any."""
    running = automation_run.c.status == RunStatus.RUNNING.value
    return union_all(
        _numbers(AUTOMATION_RUNS).where(running),
        *(
            _numbers(kind).where(kind.table.c.dispatched_at.is_not(None), _open(kind))
            for kind in _COUNTED
        ),
    )


def _open(kind: WorkTable) -> TextClause:
    """Written out as the index has it, which a prepared statement uses for nothing else."""
    return text(f"{kind.table.name}.status IN ({listed(kind.lifecycle.open)})")


def _numbers(kind: WorkTable) -> Select[Any]:
    workspace_id, family = kind.table.c.workspace_id, kind.family_of_row.label("family")
    number = func.count().label("number")
    return select(workspace_id, family, number).group_by(workspace_id, family)


def dispatching(claimed: CTE) -> list[Update]:
    """Count the work whose starts are among these rows of the outbox.

    A row that is locked is about to be closed, or had begun before.
    """
    starts = select(claimed.c.subject_id).where(claimed.c.intent == Intent.START)
    return [_dispatching(kind.table, starts) for kind in _COUNTED]


def _dispatching(table: Table, starts: Select[Any]) -> Update:
    these = (
        select(table.c.id)
        .where(is_among(table.c.id, starts), table.c.dispatched_at.is_(None))
        .with_for_update(of=table, skip_locked=True)
    )
    return update(table).where(is_among(table.c.id, these)).values(dispatched_at=func.now())
