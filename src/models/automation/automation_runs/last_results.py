"""The last run of each of several automations."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from sqlalchemy import ARRAY, Uuid, func, literal, select, true

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.database import UnitOfWork

_run = automation_run.c


class LastRun(Protocol):
    """The newest run of an automation that is no test."""

    id: Id
    automation_id: Id
    status: RunStatus
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


async def last_runs_of(
    work: UnitOfWork, actor: Actor, automation_ids: Collection[Id]
) -> Mapping[Id, LastRun]:
    """The last runs by automation; the caller has found out which of these the actor sees."""
    ids = select(
        func.unnest(literal(list(automation_ids), ARRAY(Uuid))).label("automation_id")
    ).subquery("wanted")
    newest = (
        select(
            _run.id,
            _run.automation_id,
            _run.status,
            _run.created_at,
            _run.started_at,
            _run.completed_at,
        )
        .where(
            _run.workspace_id == actor.workspace_id,
            _run.automation_id == ids.c.automation_id,
            _run.source != RunSource.TEST,
        )
        .order_by(_run.created_at.desc(), _run.id.desc())
        .limit(1)
        .correlate(ids)
        .lateral("newest")
    )
    statement = select(newest).select_from(ids.join(newest, true()))
    rows = await work.rows(statement, of=LastRun)
    return {row.automation_id: row for row in rows}
