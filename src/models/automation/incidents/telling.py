"""Telling people and the log that an incident opened, grew or closed."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import select

from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.joins import AUTOMATION, VERSION, automation_of
from models.automation.incidents.rules import CloseReason, IncidentChange
from models.automation.incidents.tables import incident
from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.workspace_events.commands import append_event
from models.messages.workspace_events.rules import EventType
from runtime.database import UnitOfWork

_incident = incident.c
_EVENTS = {
    IncidentChange.OPENED: EventType.INCIDENT_OPENED,
    IncidentChange.GREW: EventType.INCIDENT_GREW,
    IncidentChange.CLOSED: EventType.INCIDENT_CLOSED,
}
_CLOSED_BY = {
    CloseReason.PERSON: "Somebody closed the incident.",
    CloseReason.RETRIED: "All its failed runs were retried, and succeeded.",
    CloseReason.RECOVERED: "Runs have succeeded at the same node since.",
}


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a notice, which follow the name of the automation, and more of them."""

    verb: str
    body: str


class _Told(Protocol):
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


def failure_notice(change: IncidentChange, runs: int, error: str) -> Words:
    """The words about failures that opened an incident, or made it grow."""
    if change is IncidentChange.OPENED and runs == 1:
        return Words("failed", error)
    return Words(f"failed {runs:,} times", error)


def closing_notice(reason: CloseReason) -> Words:
    """The words about an incident that is closed."""
    return Words("no longer fails", _CLOSED_BY[reason])


async def tell(
    work: UnitOfWork,
    incident_id: Id,
    change: IncidentChange,
    words: Words,
    *,
    run_id: Id | None = None,
    key: str,
    actor: Actor | None = None,
) -> None:
    """Log a change, and notify its assignee and who made the version that failed last.

    Nobody is notified of a muted incident, nor of what they did. `key` names the change of this
    incident.
    """
    row = await _told(work, incident_id)
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


def _people(row: _Told, actor: Actor | None) -> Collection[Id]:
    people = {one for one in (row.author_id, row.assignee_user_id) if one is not None}
    return people - (set() if actor is None else {actor.user_id})


async def _told(work: UnitOfWork, incident_id: Id) -> _Told:
    row = await work.first(
        select(
            incident,
            AUTOMATION.label,
            AUTOMATION.item_id,
            VERSION.created_by_user_id.label("author_id"),
        )
        .join(*automation_of(incident))
        .outerjoin(VERSION.id.table, VERSION.id == _incident.last_version_id)
        .where(_incident.id == incident_id),
        of=_Told,
    )
    assert row is not None, "the transaction holds the incident, which refers to its automation"
    return row
