"""Closing incidents, by a person or by recovery, and announcing each change of one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automation_runs.queries import REPLAY, RUN, is_replay_of, succeeded_at
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.queries import AUTOMATION, VERSION, automation_of
from models.automation.incidents import rules
from models.automation.incidents.tables import Incident, incident, incident_run
from models.automation.run_operations.rules import MAX_IDS
from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
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
        sa.select(incident)
        .where(
            _incident.closed_at.is_(None),
            _incident.checked_at <= work.now_after(-SECONDS_BETWEEN_CHECKS),
        )
        .order_by(_incident.checked_at)
        .limit(MOST_CHECKED)
        # Another process checks a locked incident at this moment, or a failure joins it.
        .with_for_update(skip_locked=True),
        of=Incident,
    )
    await _note_checks(work, [row.id for row in rows])
    for row in rows:
        if await _is_retried(work, row):
            await close(work, row, rules.CloseReason.RETRIED)
        elif rules.has_recovered(await _successes(work, row), row.last_failed_at, work.now):
            await close(work, row, rules.CloseReason.RECOVERED)
    return len(rows)


async def close(
    work: UnitOfWork, row: Incident, reason: rules.CloseReason, actor: Actor | None = None
) -> None:
    """Close a locked incident that is open, and tell it."""
    await work.execute(
        sa.update(incident)
        .where(_incident.id == row.id, _incident.closed_at.is_(None))
        .values(
            closed_at=work.now,
            close_reason=reason.value,
            closed_by_user_id=None if actor is None else actor.user_id,
        )
    )
    key = f"{row.openings}/{rules.IncidentChange.CLOSED}"
    change = rules.IncidentChange.CLOSED
    await announce(work, row.id, change, closing_notice(reason), key=key, actor=actor)


def unresolved(incident_id: Id, since: sa.ColumnElement[bool], most: int) -> sa.Select[Any]:
    """The runs among the oldest of an incident without a successful retry.

    A run is resolved by a retry that succeeded. A retry that failed alike is itself a run of the
    incident, and stands for the run that it repeats.
    """
    runs = (
        sa.select(_kept.run_id, _kept.failed_at)
        .where(_kept.incident_id == incident_id, since)
        .order_by(_kept.failed_at, _kept.run_id)
        .limit(most)
        .subquery("runs")
    )
    again = incident_run.alias("again").c
    failed_alike = sa.exists().where(again.run_id == REPLAY.id, again.incident_id == incident_id)
    good = sa.exists().where(
        is_replay_of(runs.c.run_id), sa.or_(REPLAY.status == RunStatus.SUCCEEDED, failed_alike)
    )
    order = (runs.c.failed_at, runs.c.run_id)
    return sa.select(runs.c.run_id).where(~good).order_by(*order)


class Opened(Protocol):
    """An incident with the time at which it was opened last."""

    opened_at: datetime


def of_opening(row: Opened) -> sa.ColumnElement[bool]:
    """The condition that a run of an incident failed since it was opened last."""
    return _kept.failed_at >= row.opened_at


async def _is_retried(work: UnitOfWork, row: Incident) -> bool:
    """True when every run since the opening is resolved, one of them since it is watched."""
    since = of_opening(row)
    if await work.scalar(unresolved(row.id, since, MAX_IDS).limit(1)) is not None:
        return False
    made_good = sa.exists().where(
        is_replay_of(_kept.run_id),
        REPLAY.status == RunStatus.SUCCEEDED,
        REPLAY.completed_at >= row.watched_since,
    )
    of_it = sa.select(_kept.run_id).where(_kept.incident_id == row.id, since, made_good)
    return await work.scalar(of_it.limit(1)) is not None


async def _successes(work: UnitOfWork, row: Incident) -> int:
    """The runs accepted since the last failure that succeeded at the node, up to enough.

    For an incident that a member reopened, the runs since then.
    """
    since = max(row.last_failed_at, row.watched_since)
    later = (
        sa.select(RUN.id, RUN.status)
        .where(RUN.automation_id == row.automation_id, RUN.created_at > since)
        .order_by(RUN.created_at.desc(), RUN.id.desc())
        .limit(MOST_LOOKED_THROUGH)
        .subquery("later")
    )
    good = (
        sa.select(later.c.id).where(succeeded_at(later, row.node_id)).limit(rules.ENOUGH_SUCCESSES)
    )
    return int(await work.scalar(sa.select(sa.func.count()).select_from(good.subquery())))


async def _note_checks(work: UnitOfWork, incident_ids: Sequence[Id]) -> None:
    if incident_ids:
        await work.execute(
            sa.update(incident).where(_incident.id.in_(incident_ids)).values(checked_at=work.now)
        )


_EVENTS = {
    rules.IncidentChange.OPENED: EventType.INCIDENT_OPENED,
    rules.IncidentChange.GREW: EventType.INCIDENT_GREW,
    rules.IncidentChange.CLOSED: EventType.INCIDENT_CLOSED,
}
_CLOSED_BY = {
    rules.CloseReason.PERSON: "Closed manually.",
    rules.CloseReason.RETRIED: "All failed runs were retried successfully.",
    rules.CloseReason.RECOVERED: "The node succeeds again.",
}


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a notice, which follow the name of the automation, and more of them."""

    verb: str
    body: str


class _AnnouncedIncident(Protocol):
    workspace_id: Id
    automation_id: Id
    node_id: str | None
    error_code: str | None
    runs: int
    openings: int
    last_run_id: Id
    muted: bool
    assignee_user_id: Id | None
    label: str
    item_id: Id
    author_id: Id | None


def failure_notice(change: rules.IncidentChange, runs: int, error: str) -> Wording:
    """The words about failures that opened an incident, or made it grow."""
    if change is rules.IncidentChange.OPENED and runs == 1:
        return Wording("failed", error)
    return Wording(f"failed {runs:,} times", error)


def closing_notice(reason: rules.CloseReason) -> Wording:
    """The words about an incident that is closed."""
    return Wording("no longer fails", _CLOSED_BY[reason])


async def announce(
    work: UnitOfWork,
    incident_id: Id,
    change: rules.IncidentChange,
    words: Wording,
    *,
    run_id: Id | None = None,
    key: str,
    actor: Actor | None = None,
) -> None:
    """Log a change, and notify its assignee and who made the version that failed last.

    No one is notified of a muted incident, nor of their own action. `key` names the change of this
    incident.
    """
    row = await _announced(work, incident_id)
    doer = actor or automation_actor(row.workspace_id, row.automation_id)
    data = {
        "incidentId": str(incident_id),
        "automationId": str(row.automation_id),
        "runs": row.runs,
        **({} if row.node_id is None else {"nodeId": row.node_id}),
        **({} if row.error_code is None else {"errorCode": row.error_code}),
    }
    await append_event(
        work, doer.principal, row.workspace_id, _EVENTS[change], data, item_id=row.item_id
    )
    if row.muted:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_FAILED,
        title=f"“{row.label}” {words.verb}",
        body=words.body,
        item_id=row.item_id,
        run_id=run_id or row.last_run_id,
        data={
            "automationId": str(row.automation_id),
            "runId": str(run_id or row.last_run_id),
            "incidentId": str(incident_id),
            "change": change.value,
        },
        key=f"incident/{incident_id}/{key}",
    )
    await notify(work, row.workspace_id, _people(row, actor), notice)


def _people(row: _AnnouncedIncident, actor: Actor | None) -> Collection[Id]:
    people = {one for one in (row.author_id, row.assignee_user_id) if one is not None}
    return people - (set() if actor is None else {actor.user_id})


async def _announced(work: UnitOfWork, incident_id: Id) -> _AnnouncedIncident:
    row = await work.first(
        sa.select(
            incident,
            AUTOMATION.label,
            AUTOMATION.item_id,
            VERSION.created_by_user_id.label("author_id"),
        )
        .join(*automation_of(incident))
        .outerjoin(VERSION.id.table, VERSION.id == _incident.last_version_id)
        .where(_incident.id == incident_id),
        of=_AnnouncedIncident,
    )
    assert row is not None, "the transaction holds the incident, which refers to its automation"
    return row
