"""Statistics of runs on the wire, read from the sums and the ends not yet among them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.automation.automation_runs.rules import ENDED_RUN, RunStatus
from models.automation.automation_runs.slots import busiest_keys
from models.automation.automations.queries import AUTOMATION, open_automations
from models.automation.run_statistics import sums as run_statistic_sums
from models.core.access.rules import Actor, Level
from models.core.base import Id, Moment, Shape
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError


class Percentiles(Shape):
    """Durations in milliseconds, within 5 %; absent while nothing was counted."""

    p50: Annotated[int, Field(ge=0)]
    p95: Annotated[int, Field(ge=0)]
    p99: Annotated[int, Field(ge=0)]


class EndedRuns(Shape):
    """Runs that ended, by outcome; `duration` is from start to end, `queueing` until the start."""

    runs: int
    outcomes: dict[RunStatus, int]
    duration: Percentiles | None
    queueing: Percentiles | None


class Period(EndedRuns):
    """The runs that ended in the hour or the day that begins at `start`, in UTC."""

    start: Moment


class FailingNode(Shape):
    """A node in which runs failed, with the error code; without `nodeId` the run itself failed."""

    automation_id: Id
    node_id: str | None
    error_code: str | None
    runs: int


class BusyKey(Shape):
    """A concurrency key with open runs now: `admitted` have a slot, `queued` wait for one."""

    automation_id: Id
    key: str
    admitted: int
    queued: int


class RunStatistics(Shape):
    """Runs that ended from `since` until `until`; tests are not counted.

    `failingNodes` and `busiestKeys` are at most 20 each, the most first; the keys are as of now.
    """

    by: run_statistic_sums.Grain
    since: Moment
    until: Moment
    total: EndedRuns
    periods: list[Period]
    failing_nodes: list[FailingNode]
    busiest_keys: list[BusyKey]


MOST_LISTED = 20
OUTCOMES = tuple(status for status in RunStatus if status in ENDED_RUN)


@dataclass(frozen=True, slots=True)
class Span:
    """Whole hours or days, from one begin to another."""

    by: run_statistic_sums.Grain
    since: datetime
    until: datetime


def span(
    now: datetime, by: run_statistic_sums.Grain, since: datetime | None, until: datetime | None
) -> Span:
    """The whole periods that hold a time, the newest ones by default.

    Raises ValidationError for one that ends before it begins, and for too many periods.
    """
    last = by.end_of(until or now)
    first = last - by.length * by.usual if since is None else by.start_of(since)
    if last <= first:
        raise ValidationError.at("until", "Later than `since`.")
    if last - first > by.length * by.most:
        raise ValidationError.at("since", f"At most {by.most} {by}s before `until`.")
    return Span(by, first, last)


class _Sum(Protocol):
    start: datetime
    status: str | None
    duration: int | None
    queueing: int | None
    runs: int


async def attribute_counts(work: UnitOfWork) -> Mapping[tuple[str, ...], int]:
    """The runs of the whole platform that ended, by key and value of an attribute and by status."""
    rows = await work.rows(
        sa.select(run_statistic_sums.attribute_count).order_by(
            *run_statistic_sums.attribute_count.primary_key.columns
        )
    )
    return {(row.key, row.value, row.status): row.runs for row in rows}


async def get_statistics(
    work: UnitOfWork, actor: Actor, automation_id: Id | None, over: Span
) -> RunStatistics:
    """The statistics of one automation, or of all that the actor sees.

    Raises NotFoundError for an automation that the actor does not see.
    """
    automations = open_automations(actor, Level.VIEW)
    if automation_id is not None:
        automations = automations.where(AUTOMATION.id == automation_id)
        if await work.scalar(automations) is None:
            raise NotFoundError("automation")
    tallies: defaultdict[datetime, _Tally] = defaultdict(_Tally)
    total = _Tally()
    for row in await work.rows(_sums(actor, automations, over), of=_Sum):
        total.add(row)
        tallies[row.start].add(row)
    return RunStatistics(
        by=over.by,
        since=over.since,
        until=over.until,
        total=EndedRuns(**total.shown()),
        periods=[
            Period(start=start, **tallies[start].shown())
            for start in over.by.starts(over.since, over.until)
        ],
        failing_nodes=await _failing_nodes(work, actor, automations, over),
        busiest_keys=[
            BusyKey.model_validate(row)
            for row in await busiest_keys(work, actor.workspace_id, automations, MOST_LISTED)
        ],
    )


@dataclass(slots=True)
class _Tally:
    """The runs of a period by what they have in common."""

    outcomes: Counter[RunStatus] = field(default_factory=Counter)
    durations: Counter[int] = field(default_factory=Counter)
    queueing: Counter[int] = field(default_factory=Counter)

    def add(self, row: _Sum) -> None:
        """Add a sum: each is about one thing alone."""
        if row.status is not None:
            self.outcomes[RunStatus(row.status)] += row.runs
        elif row.duration is not None:
            self.durations[row.duration] += row.runs
        elif row.queueing is not None:
            self.queueing[row.queueing] += row.runs

    def shown(self) -> dict[str, Any]:
        return {
            "runs": self.outcomes.total(),
            "outcomes": {status: self.outcomes[status] for status in OUTCOMES},
            "duration": _percentiles(self.durations),
            "queueing": _percentiles(self.queueing),
        }


def _percentiles(counts: Mapping[int, int]) -> Percentiles | None:
    p50, p95, p99 = (run_statistic_sums.percentile(counts, share) for share in (0.5, 0.95, 0.99))
    if p50 is None or p95 is None or p99 is None:
        return None
    return Percentiles(p50=p50, p95=p95, p99=p99)


def _sums(actor: Actor, automations: sa.Select[Any], over: Span) -> sa.Select[Any]:
    """The sums of each period by outcome, by duration and by time in the queue."""
    names = ("start", "status", "duration", "queueing")
    settled = sa.select(
        *[run_statistic_sums.run_statistic.c[name] for name in names],
        run_statistic_sums.run_statistic.c.runs,
    ).where(*_within(run_statistic_sums.run_statistic, actor, automations, over))
    ends = _ends(actor, automations, over)
    start = run_statistic_sums.period_of(sa.literal(over.by.value), ends.c.completed_at)
    others = (ends.c[name] for name in names[1:])
    all_rows = sa.union_all(
        settled, sa.select(start.label("start"), *others, sa.literal(1))
    ).subquery("every")
    ways = [sa.tuple_(all_rows.c.start, all_rows.c[name]) for name in names[1:]]
    return sa.select(
        *[all_rows.c[name] for name in names],
        sa.cast(sa.func.sum(all_rows.c.runs), sa.BigInteger).label("runs"),
    ).group_by(sa.func.grouping_sets(*ways))


async def _failing_nodes(
    work: UnitOfWork, actor: Actor, automations: sa.Select[Any], over: Span
) -> Sequence[FailingNode]:
    names = ("automation_id", "node_id", "error_code")
    settled = sa.select(
        *[run_statistic_sums.failure_statistic.c[name] for name in names],
        run_statistic_sums.failure_statistic.c.runs,
    ).where(*_within(run_statistic_sums.failure_statistic, actor, automations, over))
    ends = _ends(actor, automations, over)
    failed = ends.c.status.in_([status.value for status in run_statistic_sums.FAILURES])
    late = sa.select(*[ends.c[name] for name in names], sa.literal(1)).where(failed)
    every = sa.union_all(settled, late).subquery("every")
    key = [every.c[name] for name in names]
    runs = sa.cast(sa.func.sum(every.c.runs), sa.BigInteger)
    statement = sa.select(*key, runs.label("runs")).group_by(*key).order_by(runs.desc(), *key)
    return [
        FailingNode(
            automation_id=row.automation_id,
            node_id=row.node_id or None,
            error_code=row.error_code or None,
            runs=row.runs,
        )
        for row in await work.rows(statement.limit(MOST_LISTED))
    ]


def _within(
    sums: sa.Table, actor: Actor, automations: sa.Select[Any], over: Span
) -> Iterable[sa.ColumnElement[bool]]:
    columns = sums.c
    return (
        columns.workspace_id == actor.workspace_id,
        columns.grain == over.by.value,
        columns.start >= over.since,
        columns.start < over.until,
        columns.automation_id.in_(automations),
    )


def _ends(actor: Actor, automations: sa.Select[Any], over: Span) -> sa.Subquery:
    """The ends of the span that are not yet among the sums."""
    late = (
        sa.select(run_statistic_sums.ended_run)
        .where(run_statistic_sums.ended_run.c.workspace_id == actor.workspace_id)
        .subquery("late")
    )
    ends = run_statistic_sums.ends_of(late).subquery("ends")
    return (
        sa.select(ends)
        .where(
            ends.c.automation_id.in_(automations),
            ends.c.completed_at >= over.since,
            ends.c.completed_at < over.until,
        )
        .subquery("late_ends")
    )
