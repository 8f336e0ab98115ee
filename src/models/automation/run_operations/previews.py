"""The runs that an operation would select now, and what it would do to them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Select, Uuid, any_, func, literal, select

from models.automation.automation_runs.joins import RUN
from models.automation.automation_runs.repeated_effects import count_retried, repeated_effects
from models.automation.automation_runs.rules import RunStatus
from models.automation.automations.joins import AUTOMATION, VERSION, automation_of, version_of
from models.automation.run_operations.commands import check
from models.automation.run_operations.rules import OperationAction, fitting
from models.automation.run_operations.selection import OLDEST_FIRST, candidates, in_reach
from models.automation.run_operations.shapes import (
    PreviewRunOperation,
    RepeatedNode,
    RunOperationPreview,
    VersionCount,
)
from models.core.access.rules import Actor
from models.core.base import JsonObject
from runtime.database import UnitOfWork

MOST_COUNTED = 100_000
"""Runs that a preview counts."""
MOST_EXAMINED = 10_000
"""Runs whose versions and nodes a preview looks at: the oldest."""
MOST_SEARCHED = 10_000
"""Runs through which a preview searches for what no index answers: the oldest."""
_MOST_LINES = 100


async def preview(
    work: UnitOfWork,
    actor: Actor,
    body: PreviewRunOperation,
    *,
    counted: int = MOST_COUNTED,
    examined: int = MOST_EXAMINED,
) -> RunOperationPreview:
    """The preview of an operation.

    Raises ValidationError, and NotFoundError for an automation that the actor does not see.
    """
    parameters = await check(work, actor, body)
    runs = _selected(actor, body, work.now)
    statuses = await _statuses(work, runs, counted)
    total = sum(statuses.values())
    fits = fitting(body.action, parameters)
    applicable = runs.where(RUN.status.in_(fits))
    # Of more runs than are counted, those that fit may all be among the others.
    of_fitting = await _statuses(work, applicable, counted) if total > counted else statuses
    first = (
        applicable.with_only_columns(RUN.id, RUN.automation_id, RUN.automation_version_id)
        .order_by(*OLDEST_FIRST)
        .limit(examined)
    )
    versions = await _versions(work, first)
    return RunOperationPreview(
        total=min(total, counted),
        fitting=min(counted, sum(of_fitting.get(status, 0) for status in fits)),
        more=total > counted or await _is_searched_in_part(work, actor, body),
        examined=sum(version.runs for version in versions),
        statuses=statuses,
        retried_before=await _retried(work, first, body.action),
        versions=versions[:_MOST_LINES],
        repeats=await _repeats(work, first, body.action, parameters),
    )


def _selected(actor: Actor, body: PreviewRunOperation, now: datetime) -> Select[Any]:
    runs = in_reach(actor, body.action)
    if body.run_ids is not None:
        return runs.where(RUN.id == any_(literal(list(set(body.run_ids)), ARRAY(Uuid))))
    assert body.filter is not None, "it was checked"
    filters = body.filter.filter(now)
    runs = candidates(runs, body.filter, filters)
    if not filters.is_searched:
        return runs
    oldest = runs.with_only_columns(RUN.id).order_by(*OLDEST_FIRST).limit(MOST_SEARCHED)
    return runs.where(RUN.id.in_(oldest), *filters.searches(RUN))


async def _is_searched_in_part(work: UnitOfWork, actor: Actor, body: PreviewRunOperation) -> bool:
    """True when a search was not made through all runs that it is made through."""
    filters = None if body.filter is None else body.filter.filter(work.now)
    if body.filter is None or filters is None or not filters.is_searched:
        return False
    runs = candidates(in_reach(actor, body.action), body.filter, filters)
    others = runs.with_only_columns(RUN.id).order_by(*OLDEST_FIRST).offset(MOST_SEARCHED).limit(1)
    return await work.scalar(others) is not None


async def _statuses(work: UnitOfWork, runs: Select[Any], most: int) -> dict[RunStatus, int]:
    """The number of runs of each status, one more than `most` in all where there are more."""
    some = runs.with_only_columns(RUN.status).limit(most + 1).subquery()
    rows = await work.rows(
        select(some.c.status, func.count().label("runs")).group_by(some.c.status)
    )
    return {RunStatus(row.status): row.runs for row in rows}


async def _versions(work: UnitOfWork, runs: Select[Any]) -> list[VersionCount]:
    """The versions of runs, with the number of runs of each, the largest first."""
    picked = runs.subquery("picked")
    counts = (
        select(picked.c.automation_id, picked.c.automation_version_id, func.count().label("runs"))
        .group_by(picked.c.automation_id, picked.c.automation_version_id)
        .subquery("counts")
    )
    rows = await work.rows(
        select(counts, AUTOMATION.label.label("automation_label"), VERSION.version)
        .join(*automation_of(counts))
        .join(*version_of(counts))
        .order_by(counts.c.runs.desc(), AUTOMATION.label, VERSION.version)
    )
    return [VersionCount.model_validate(row) for row in rows]


async def _retried(work: UnitOfWork, runs: Select[Any], action: OperationAction) -> int:
    return await count_retried(work, runs) if action == OperationAction.RETRY else 0


async def _repeats(
    work: UnitOfWork, runs: Select[Any], action: OperationAction, parameters: JsonObject
) -> Sequence[RepeatedNode]:
    if action != OperationAction.RETRY:
        return []
    only_failed = parameters["from"] == "failed"
    rows = await repeated_effects(work, runs, _MOST_LINES, only_failed=only_failed)
    return [RepeatedNode.model_validate(row) for row in rows]
