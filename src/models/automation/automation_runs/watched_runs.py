"""Runs that alert rules watch: failed of late, ended of late, open for long. Tests are left out.

Each is one statement on an index, and looks at a bounded number of runs, however many there are.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, and_, not_, select, union_all

from models.automation.automation_runs.queries import workspace_runs
from models.automation.automation_runs.rules import ACTIVE_RUN, ENDED_RUN, RunSource, RunStatus
from models.automation.automation_runs.run_filters import RunFilter
from models.automation.automation_runs.tables import IS_ENDED, IS_FAILED, IS_OPEN, automation_run
from models.core.access.rules import Actor, Level
from models.core.base import Id
from runtime.database import UnitOfWork

MOST_LOOKED_AT = 10_000
"""Runs of each state through which the filters are looked for."""
MOST_ENDED = 300
"""Ended runs of each state and source, the ones accepted last, that are looked at."""
_run = automation_run.c
_IS_NO_TEST = and_(
    _run.source != RunSource.TEST,
    not_(_run.options.contains({"test": True})),
)


class WatchedRun(Protocol):
    """A run, and the moment by which it is watched."""

    id: Id
    moment: datetime


async def failed_since(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id | None,
    filters: RunFilter,
    since: datetime,
    most: int,
) -> Sequence[WatchedRun]:
    """The newest runs that failed or timed out since a moment, up to `most`."""
    failed = _runs(actor, automation_id, filters).where(IS_FAILED, _run.completed_at >= since)
    order = _run.completed_at.desc()
    return await work.rows(_fitting(failed, order, filters, "completed_at", most), of=WatchedRun)


async def ended_since(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    filters: RunFilter,
    since: datetime,
    statuses: Sequence[RunStatus] = ENDED_RUN,
) -> WatchedRun | None:
    """A run of an automation that ended since a moment in one of these states; None without any.

    Ends have no index of their own: the newest runs of each state and source are looked at.
    """
    runs = _runs(actor, automation_id, filters).where(IS_ENDED)
    sources = [source for source in RunSource if source is not RunSource.TEST]
    parts = [
        select(
            runs.where(_run.status == status, _run.source == source)
            .order_by(_run.created_at.desc(), _run.id.desc())
            .limit(MOST_ENDED)
            .subquery()
        )
        for status in statuses
        for source in sources
    ]
    every = union_all(*parts).subquery("every")
    fitting = select(every.c.id, every.c.completed_at.label("moment")).where(
        every.c.completed_at >= since, *filters.searches(every.c)
    )
    return await work.first(fitting.limit(1), of=WatchedRun)


async def longest_active(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id | None,
    filters: RunFilter,
    before: datetime,
) -> WatchedRun | None:
    """The open run that was started first, if that was before a moment."""
    runs = _runs(actor, automation_id, filters)
    parts = [
        select(_oldest(runs, filters, status, "started_at").subquery()) for status in ACTIVE_RUN
    ]
    every = union_all(*parts).subquery("every")
    longest = select(every).where(every.c.moment < before).order_by(every.c.moment)
    return await work.first(longest.limit(1), of=WatchedRun)


async def oldest_queued(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id | None,
    filters: RunFilter,
    before: datetime,
) -> WatchedRun | None:
    """The queued run that was accepted first, if that was before a moment."""
    runs = _runs(actor, automation_id, filters)
    queued = _oldest(runs, filters, RunStatus.QUEUED, "created_at").subquery()
    oldest = select(queued).where(queued.c.moment < before).order_by(queued.c.moment)
    return await work.first(oldest.limit(1), of=WatchedRun)


def _runs(actor: Actor, automation_id: Id | None, filters: RunFilter) -> Select[Any]:
    runs = workspace_runs(actor, Level.VIEW).where(_IS_NO_TEST, *filters.conditions())
    return runs if automation_id is None else runs.where(_run.automation_id == automation_id)


def _oldest(runs: Select[Any], filters: RunFilter, status: RunStatus, moment: str) -> Select[Any]:
    """The oldest open runs of a state, with a moment; ids grow with time."""
    of_state = runs.where(IS_OPEN, _run.status == status)
    return _fitting(of_state, _run.id.asc(), filters, moment, MOST_LOOKED_AT)


def _fitting(
    runs: Select[Any], order: ColumnElement[Any], filters: RunFilter, moment: str, most: int
) -> Select[Any]:
    """The first of these runs that fit what no index answers, with the moment."""
    first = runs.order_by(order).limit(MOST_LOOKED_AT).subquery()
    fitting = select(first.c.id, first.c[moment].label("moment"))
    return fitting.where(*filters.searches(first.c)).limit(most)
