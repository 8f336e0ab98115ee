"""Facts of the newest runs of automations: what they were given, and how they ended."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import ARRAY, Uuid, func, literal, select, true
from sqlalchemy.dialects.postgresql import distinct_on

from models.automation.automation_runs.rules import ENDED_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Actor
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
