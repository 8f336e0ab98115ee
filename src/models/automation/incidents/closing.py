"""Closing incidents: by a person, or by themselves once it goes well again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, exists, func, or_, select, update

from models.automation.automation_runs.joins import REPLAY, RUN, is_replay_of, succeeded_at
from models.automation.automation_runs.rules import RunStatus
from models.automation.incidents.rules import (
    ENOUGH_SUCCESSES,
    CloseReason,
    IncidentChange,
    has_recovered,
)
from models.automation.incidents.tables import Incident, incident, incident_run
from models.automation.incidents.telling import closing_notice, tell
from models.automation.run_operations.rules import MAX_IDS
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.database import UnitOfWork

MOST_CHECKED = 50
"""Incidents that one transaction checks."""
SECONDS_BETWEEN_CHECKS = 60
MOST_LOOKED_THROUGH = 1_000
"""Runs since the last failure that are looked through for some that succeeded at the node."""
_incident = incident.c
_kept = incident_run.c


async def close_recovered(work: UnitOfWork) -> int:
    """Check some open incidents, and close each that is over. Repeat until 0."""
    rows = await work.rows(
        select(incident)
        .where(
            _incident.closed_at.is_(None),
            _incident.checked_at <= work.now_after(-SECONDS_BETWEEN_CHECKS),
        )
        .order_by(_incident.checked_at)
        .limit(MOST_CHECKED)
        .with_for_update(skip_locked=True),
        of=Incident,
    )
    await _note_checks(work, [row.id for row in rows])
    for row in rows:
        if await _is_retried(work, row):
            await close(work, row, CloseReason.RETRIED)
        elif has_recovered(await _successes(work, row), row.last_failed_at, work.now):
            await close(work, row, CloseReason.RECOVERED)
    return len(rows)


async def close(
    work: UnitOfWork, row: Incident, reason: CloseReason, actor: Actor | None = None
) -> None:
    """Close a locked incident that is open, and tell it."""
    await work.execute(
        update(incident)
        .where(_incident.id == row.id, _incident.closed_at.is_(None))
        .values(
            closed_at=work.now,
            close_reason=reason.value,
            closed_by_user_id=None if actor is None else actor.user_id,
        )
    )
    key = f"{row.openings}/{IncidentChange.CLOSED}"
    change = IncidentChange.CLOSED
    await tell(work, row.id, change, closing_notice(reason), key=key, actor=actor)


def unresolved(incident_id: Id, since: ColumnElement[bool], most: int) -> Select[Any]:
    """The runs among the oldest of an incident whose failure nothing has made good.

    A run is made good by a retry that succeeded. A retry that failed alike is itself a run of the
    incident, and stands for the run that it repeats.
    """
    runs = (
        select(_kept.run_id, _kept.failed_at)
        .where(_kept.incident_id == incident_id, since)
        .order_by(_kept.failed_at, _kept.run_id)
        .limit(most)
        .subquery("runs")
    )
    again = incident_run.alias("again").c
    failed_alike = exists().where(again.run_id == REPLAY.id, again.incident_id == incident_id)
    good = exists().where(
        is_replay_of(runs.c.run_id), or_(REPLAY.status == RunStatus.SUCCEEDED, failed_alike)
    )
    order = (runs.c.failed_at, runs.c.run_id)
    return select(runs.c.run_id).where(~good).order_by(*order)


class Opened(Protocol):
    """An incident with the time at which it was opened last."""

    opened_at: datetime


def of_opening(row: Opened) -> ColumnElement[bool]:
    """The condition that a run of an incident failed since it was opened last."""
    return _kept.failed_at >= row.opened_at


async def _is_retried(work: UnitOfWork, row: Incident) -> bool:
    """True when every run since the opening is made good, one of them since it is watched."""
    since = of_opening(row)
    if await work.scalar(unresolved(row.id, since, MAX_IDS).limit(1)) is not None:
        return False
    made_good = exists().where(
        is_replay_of(_kept.run_id),
        REPLAY.status == RunStatus.SUCCEEDED,
        REPLAY.completed_at >= row.watched_since,
    )
    of_it = select(_kept.run_id).where(_kept.incident_id == row.id, since, made_good)
    return await work.scalar(of_it.limit(1)) is not None


async def _successes(work: UnitOfWork, row: Incident) -> int:
    """The runs accepted since the last failure that succeeded at the node, up to enough.

    Of an incident that somebody opened again, those since then.
    """
    since = max(row.last_failed_at, row.watched_since)
    later = (
        select(RUN.id, RUN.status)
        .where(RUN.automation_id == row.automation_id, RUN.created_at > since)
        .order_by(RUN.created_at.desc(), RUN.id.desc())
        .limit(MOST_LOOKED_THROUGH)
        .subquery("later")
    )
    good = select(later.c.id).where(succeeded_at(later, row.node_id)).limit(ENOUGH_SUCCESSES)
    return int(await work.scalar(select(func.count()).select_from(good.subquery())))


async def _note_checks(work: UnitOfWork, incident_ids: Sequence[Id]) -> None:
    if incident_ids:
        await work.execute(
            update(incident).where(_incident.id.in_(incident_ids)).values(checked_at=work.now)
        )
