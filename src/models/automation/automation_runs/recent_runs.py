"""Facts of the newest runs of automations: what they were given, and how they ended."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ARRAY, Select, Uuid, func, literal, select, true, union_all
from sqlalchemy.dialects.postgresql import distinct_on

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import IS_OPEN, automation_run
from models.automation.automations.joins import AUTOMATION, open_automations
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork

_run = automation_run.c
_LOOKED_AT = 100
"""The newest runs of an automation that are read at most."""
_LARGEST = 64 * 1024
"""Bytes, as they are stored, of a payload that a person is offered."""


class RecentPayload(Protocol):
    """A payload, and the newest run that had it."""

    id: Id
    created_at: datetime
    trigger_payload: JsonObject


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The newest ended runs of an automation that are no tests, and how many succeeded."""

    ended: int
    succeeded: int

    @property
    def percent(self) -> int:
        return round(100 * self.succeeded / self.ended)


async def recent_payloads(
    work: UnitOfWork, actor: Actor, automation_id: Id, most: int
) -> Sequence[RecentPayload]:
    """The last distinct payloads of an automation that the actor sees, the newest first."""
    newest = (
        select(_run.id, _run.created_at, _run.trigger_payload)
        .where(_run.workspace_id == actor.workspace_id, _run.automation_id == automation_id)
        .order_by(_run.created_at.desc(), _run.id.desc())
        .limit(_LOOKED_AT)
        .subquery("newest")
    )
    different = (
        select(newest)
        .ext(distinct_on(newest.c.trigger_payload))
        .where(func.pg_column_size(newest.c.trigger_payload) <= _LARGEST)
        .order_by(newest.c.trigger_payload, newest.c.created_at.desc(), newest.c.id.desc())
        .subquery("different")
    )
    ordered = select(different).order_by(different.c.created_at.desc(), different.c.id.desc())
    return await work.rows(ordered.limit(most), of=RecentPayload)


async def recent_outcomes(
    work: UnitOfWork, actor: Actor, automation_ids: Collection[Id], most: int
) -> Mapping[Id, Outcomes]:
    """The outcomes by automation; the caller has found out which of these the actor sees."""
    ids = select(
        func.unnest(literal(list(automation_ids), ARRAY(Uuid))).label("automation_id")
    ).subquery("wanted")
    newest = (
        select(_run.status, _run.source)
        .where(_run.workspace_id == actor.workspace_id, _run.automation_id == ids.c.automation_id)
        .order_by(_run.created_at.desc(), _run.id.desc())
        .limit(_LOOKED_AT)
        .correlate(ids)
        .subquery("newest")
    )
    endings = (
        select(newest.c.status)
        .where(newest.c.status.in_(ENDED_RUN), newest.c.source != RunSource.TEST)
        .limit(most)
        .lateral("ended")
    )
    succeeded = func.count().filter(endings.c.status == RunStatus.SUCCEEDED)
    rows = await work.rows(
        select(ids.c.automation_id, func.count().label("ended"), succeeded.label("succeeded"))
        .select_from(ids.join(endings, true()))
        .group_by(ids.c.automation_id)
    )
    return {row.automation_id: Outcomes(row.ended, row.succeeded) for row in rows}


async def count_open(
    work: UnitOfWork, actor: Actor, automation_id: Id | None, most: int
) -> Mapping[RunStatus, int]:
    """The open runs by status that the actor sees, each counted up to `most`."""
    automations = open_automations(actor, Level.VIEW)
    if automation_id is not None:
        automations = automations.where(AUTOMATION.id == automation_id)

    def of_status(status: RunStatus) -> Select[Any]:
        runs = select(literal(status.value).label("status")).where(
            _run.workspace_id == actor.workspace_id,
            IS_OPEN,
            _run.status == status,
            _run.automation_id.in_(automations),
        )
        return select(runs.limit(most).subquery())

    every = union_all(*map(of_status, sorted(OPEN_RUN))).subquery("every")
    rows = await work.rows(
        select(every.c.status, func.count().label("runs")).group_by(every.c.status)
    )
    return {RunStatus(row.status): row.runs for row in rows}
