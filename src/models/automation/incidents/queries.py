"""Incidents on the wire, and reading them; every query names the workspace."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.automation.automations import queries as automation_queries
from models.automation.incidents.closing import of_opening, unresolved
from models.automation.incidents.rules import CloseReason
from models.automation.incidents.tables import (
    Incident,
    IncidentRun,
    incident,
    incident_run,
    incident_version,
)
from models.automation.run_operations.rules import MAX_RATE, MIN_RATE
from models.content.items.queries import PlacementOf
from models.core.access.rules import Actor, Level
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Moment, Shape, example
from models.core.pagination import Listed, PageRequest
from runtime.database import UnitOfWork

MAX_NOTE = 2_000


class IncidentState(StrEnum):
    """The state by which incidents are listed; a muted one is open, without notifications."""

    OPEN = "open"
    MUTED = "muted"
    CLOSED = "closed"


class IncidentSummary(Shape):
    """Similar failures: of one automation, at one node, with one code and message.

    In `message` placeholders such as `<number>` replace what differs between runs. `runs` counts
    them since it was last opened, `runsInAll` in total.
    """

    id: Id
    automation_id: Id
    automation_label: str
    state: IncidentState
    node_id: str | None = None
    error_code: str | None = None
    message: str
    runs: int
    runs_in_all: int
    openings: int
    first_failed_at: Moment
    last_failed_at: Moment
    opened_at: Moment
    closed_at: Moment | None = None
    close_reason: CloseReason | None = None
    closed_by_user_id: Id | None = None
    assignee_user_id: Id | None = None
    muted: bool
    note: str


class IncidentList(Listed):
    """A page of incidents, the one that was opened last first."""

    incidents: list[IncidentSummary]


class IncidentVersionCount(Shape):
    """A version of the automation, and the runs of the incident that ran on it."""

    automation_version_id: Id
    version: int
    runs: int


class SuspectedVersion(Shape):
    """The version that was published last before the first failure of this opening."""

    automation_version_id: Id
    version: int
    published_at: Moment
    author_user_id: Id | None = None


class IncidentDetail(IncidentSummary):
    """One incident; `unresolved` runs were not retried with success.

    They are counted among the oldest 10,000 runs of this opening.
    """

    unresolved: int
    versions: list[IncidentVersionCount]
    suspected_version: SuspectedVersion | None = None


class IncidentRunShape(Shape):
    """A failed run of an incident; read the run itself for its details."""

    run_id: Id
    failed_at: Moment


class IncidentRunList(Listed):
    """A page of the runs of an incident, the one that failed last first."""

    runs: list[IncidentRunShape]


class IncidentRecordShape(Shape):
    """A record that failed runs of an incident were about, or wrote before; `runs` counts them."""

    record_id: Id
    database_id: Id
    database_label: str
    title: str
    runs: int
    last_failed_at: Moment
    last_run_id: Id


class IncidentRecordList(Listed):
    """A page of the records of an incident that the caller sees, the last one concerned first."""

    records: list[IncidentRecordShape]


class UpdateIncident(Input):
    """Body of update incident; a key that is left out stays as it is, null unassigns."""

    model_config = example({"assigneeUserId": EXAMPLE_ID, "muted": True, "note": "The bank knows."})

    assignee_user_id: InputId | None = None
    muted: bool | None = None
    note: Annotated[str, Field(max_length=MAX_NOTE)] | None = None


class RetryIncident(Input):
    """Body of retry incident: the version and the place at which its runs are retried."""

    model_config = example({"version": "published", "from": "failed"})

    version: Literal["original", "published"] = "published"
    from_: Annotated[Literal["failed", "start"], Field(alias="from")] = "failed"
    rate: Annotated[float, Field(ge=MIN_RATE, le=MAX_RATE)] | None = None


MOST_COUNTED = 10_000
"""Runs of an opening, the oldest ones, through which a page looks for failed retries."""
_MOST_VERSIONS = 50
_incident = incident.c
_kept = incident_run.c

visible = PlacementOf(
    automation_queries.placed_automations()
    .join(incident, _incident.automation_id == automation_queries.AUTOMATION.id)
    .where(
        _incident.id == sa.bindparam("id", type_=sa.Uuid),
        _incident.workspace_id == automation_queries.AUTOMATION.workspace_id,
    )
)
"""The placement of an incident's automation."""


class _NamedIncident(Protocol):
    id: Id
    workspace_id: Id
    automation_id: Id
    runs: int
    runs_before: int
    opened_at: datetime
    closed_at: datetime | None
    close_reason: str | None
    muted: bool


async def list_incidents(
    work: UnitOfWork,
    actor: Actor,
    page: PageRequest,
    state: IncidentState | None = None,
    automation_id: Id | None = None,
) -> IncidentList:
    """The incidents of automations that the actor sees, the one opened last first."""
    statement = _named(actor).where(
        _incident.automation_id.in_(automation_queries.open_automations(actor, Level.VIEW))
    )
    if state is not None:
        is_open = _incident.closed_at.is_(None)
        muted = _incident.muted.is_(state is IncidentState.MUTED)
        conditions = (~is_open,) if state is IncidentState.CLOSED else (is_open, muted)
        statement = statement.where(*conditions)
    if automation_id is not None:
        statement = statement.where(_incident.automation_id == automation_id)
    rows = await page.descending(
        work, statement, _incident.opened_at, _incident.id, of=_NamedIncident
    )
    return IncidentList.of(rows, lambda row: IncidentSummary(**_summary(row)))


async def count_open(work: UnitOfWork, actor: Actor, most: int) -> int:
    """The number of open incidents that are not muted and that the actor sees, up to `most`."""
    some = (
        sa.select(_incident.id)
        .where(
            _incident.workspace_id == actor.workspace_id,
            _incident.closed_at.is_(None),
            ~_incident.muted,
            _incident.automation_id.in_(automation_queries.open_automations(actor, Level.VIEW)),
        )
        .limit(most)
    )
    return int(await work.scalar(sa.select(sa.func.count()).select_from(some.subquery())))


async def get_incident(work: UnitOfWork, actor: Actor, incident_id: Id) -> IncidentDetail:
    """One incident, with its versions. Raises NotFoundError."""
    row = await work.one(
        _named(actor).where(_incident.id == incident_id), "incident", of=_NamedIncident
    )
    left = unresolved(row.id, of_opening(row), MOST_COUNTED).subquery()
    return IncidentDetail(
        **_summary(row),
        unresolved=int(await work.scalar(sa.select(sa.func.count()).select_from(left))),
        versions=await _versions(work, row),
        suspected_version=await _suspected(work, row),
    )


async def list_incident_runs(
    work: UnitOfWork, actor: Actor, incident_id: Id, page: PageRequest
) -> IncidentRunList:
    """The runs of an incident, the one that failed last first."""
    statement = sa.select(incident_run).where(
        _kept.workspace_id == actor.workspace_id, _kept.incident_id == incident_id
    )
    rows = await page.descending(work, statement, _kept.failed_at, _kept.run_id, of=IncidentRun)
    return IncidentRunList.of(rows)


async def load(work: UnitOfWork, actor: Actor, incident_id: Id) -> Incident:
    """The row of an incident, locked. Raises NotFoundError."""
    statement = sa.select(incident).where(
        _incident.workspace_id == actor.workspace_id, _incident.id == incident_id
    )
    return await work.one(statement.with_for_update(), "incident", of=Incident)


def _named(actor: Actor) -> sa.Select[Any]:
    return (
        sa.select(incident, automation_queries.AUTOMATION.label.label("automation_label"))
        .join(*automation_queries.automation_of(incident))
        .where(_incident.workspace_id == actor.workspace_id)
    )


def _summary(row: _NamedIncident) -> dict[str, Any]:
    own = IncidentSummary.model_fields.keys() - {"state", "runs", "runs_in_all", "close_reason"}
    return {
        **{name: getattr(row, name) for name in own},
        "state": _state(row),
        "runs": row.runs - row.runs_before,
        "runs_in_all": row.runs,
        "close_reason": row.close_reason and CloseReason(row.close_reason),
    }


def _state(row: _NamedIncident) -> IncidentState:
    if row.closed_at is not None:
        return IncidentState.CLOSED
    return IncidentState.MUTED if row.muted else IncidentState.OPEN


async def _versions(work: UnitOfWork, row: _NamedIncident) -> Sequence[IncidentVersionCount]:
    counts = incident_version.c
    rows = await work.rows(
        sa.select(counts.automation_version_id, counts.runs, automation_queries.VERSION.version)
        .join(*automation_queries.version_of(incident_version))
        .where(counts.incident_id == row.id)
        .order_by(automation_queries.VERSION.version.desc())
        .limit(_MOST_VERSIONS)
    )
    return [IncidentVersionCount.model_validate(one) for one in rows]


async def _suspected(work: UnitOfWork, row: _NamedIncident) -> SuspectedVersion | None:
    version = await work.first(
        sa.select(
            automation_queries.VERSION.id.label("automation_version_id"),
            automation_queries.VERSION.version,
            automation_queries.VERSION.published_at,
            automation_queries.VERSION.created_by_user_id.label("author_user_id"),
        )
        .where(
            automation_queries.VERSION.workspace_id == row.workspace_id,
            automation_queries.VERSION.automation_id == row.automation_id,
            automation_queries.VERSION.published_at <= row.opened_at,
        )
        .order_by(automation_queries.VERSION.published_at.desc())
        .limit(1)
    )
    return None if version is None else SuspectedVersion.model_validate(version)
