"""Sums of runs that ended: their tables and upkeep, and the statistics that are read from them."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import JSONB, Insert, insert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.automation.automation_runs.queries import RUN, failed_node_of, run_of
from models.automation.automation_runs.rules import ENDED_RUN, RunStatus
from models.automation.automation_runs.slots import busiest_keys
from models.automation.automations.queries import AUTOMATION, open_automations
from models.core.access.rules import Actor, Level
from models.core.base import Id, Moment, Shape
from models.core.purging import MAX_ROWS
from runtime.configuration.sections import OTHER
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.postgresql.schema import Timestamp, table_of


class EndedRun(SQLModel, table=True):
    """A run whose end is not yet part of the sums.

    A trigger of the runs writes it with the end, so nothing is counted that did not happen, and no
    run waits for a sum. It refers to nothing by a constraint: each end would pay for the look.
    """

    __tablename__ = "ended_run"
    __table_args__ = (sa.Index("ix_ended_run_workspace_id", "workspace_id"),)

    run_id: Id = TableField(primary_key=True)
    workspace_id: Id


class RunStatistic(SQLModel, table=True):
    """The runs of an automation that ended alike in a period; tests are not among them.

    Durations and times in the queue are in buckets of `rules`.
    """

    __tablename__ = "run_statistic"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.Index("ix_run_statistic_grain_start", "grain", "start"),
    )

    workspace_id: Id = TableField(primary_key=True)
    grain: str = TableField(primary_key=True)
    start: datetime = TableField(sa_type=Timestamp, primary_key=True)
    automation_id: Id = TableField(primary_key=True)
    status: str = TableField(primary_key=True)
    duration: int = TableField(sa_type=sa.SmallInteger, primary_key=True)
    queueing: int = TableField(sa_type=sa.SmallInteger, primary_key=True)
    runs: int = TableField(sa_type=sa.BigInteger)


class FailureStatistic(SQLModel, table=True):
    """The failed runs of an automation in a period, by the node that failed and its error code."""

    __tablename__ = "failure_statistic"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.Index("ix_failure_statistic_grain_start", "grain", "start"),
    )

    workspace_id: Id = TableField(primary_key=True)
    grain: str = TableField(primary_key=True)
    start: datetime = TableField(sa_type=Timestamp, primary_key=True)
    automation_id: Id = TableField(primary_key=True)
    node_id: str = TableField(primary_key=True)
    error_code: str = TableField(primary_key=True)
    runs: int = TableField(sa_type=sa.BigInteger)


class AttributeCount(SQLModel, table=True):
    """The runs of the platform that ended with a value of an attribute that metrics count.

    The operator lists keys and values, so there are few rows, and none names a workspace.
    """

    __tablename__ = "attribute_count"

    key: str = TableField(primary_key=True)
    value: str = TableField(primary_key=True)
    status: str = TableField(primary_key=True)
    runs: int = TableField(sa_type=sa.BigInteger)


ended_run = table_of(EndedRun)
run_statistic = table_of(RunStatistic)
failure_statistic = table_of(FailureStatistic)
attribute_count = table_of(AttributeCount)


BASE = 1.1
"""The width of a bucket: a percentile is exact within 5 %."""
NEVER = -1
"""The bucket of a run that never began."""


class Grain(StrEnum):
    """The length of a period, in UTC."""

    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is Grain.HOUR else timedelta(days=1)

    @property
    def most(self) -> int:
        """The periods that one answer holds at most: a week by hours, a year by days."""
        return 168 if self is Grain.HOUR else 366

    @property
    def usual(self) -> int:
        """The periods that are read by default."""
        return 24 if self is Grain.HOUR else 30

    @property
    def kept(self) -> timedelta:
        """The time for which sums are kept."""
        return timedelta(days=35) if self is Grain.HOUR else timedelta(days=400)

    def start_of(self, moment: datetime) -> datetime:
        """The begin of the period that a moment lies in."""
        start = moment.replace(minute=0, second=0, microsecond=0)
        return start if self is Grain.HOUR else start.replace(hour=0)

    def end_of(self, moment: datetime) -> datetime:
        """The first begin of a period that is not before a moment."""
        start = self.start_of(moment)
        return start if start == moment else start + self.length

    def starts(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """The begins of the periods from one begin to another."""
        return [since + self.length * number for number in range((until - since) // self.length)]


def milliseconds(bucket: int) -> int:
    """The duration in the middle of a bucket."""
    middle: float = BASE ** (bucket + 0.5) - 1
    return round(middle)


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """The duration in milliseconds that a share of the runs did not exceed; None without any.

    It is the nearest rank, told as the middle of its bucket.
    """
    known = {bucket: number for bucket, number in counts.items() if bucket != NEVER}
    if not known:
        return None
    buckets = sorted(known)
    passed = list(accumulate(known[bucket] for bucket in buckets))
    return milliseconds(buckets[bisect_left(passed, share * passed[-1])])


MOST_AT_ONCE = 5_000
FAILURES = (RunStatus.FAILED, RunStatus.TIMED_OUT)
_KINDS_OF_SUMS: Sequence[sa.Table] = (run_statistic, failure_statistic)


async def settle_runs(
    work: UnitOfWork, counted_attributes: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> int:
    """Add some of the runs that ended to the sums. Returns their number; repeat until 0.

    Metrics count the runs with `counted_attributes`, by key and value.
    """
    next_ones = (
        sa.select(ended_run.c.run_id)
        .order_by(ended_run.c.run_id)
        .limit(MOST_AT_ONCE)
        # Another process counts the locked runs at this moment.
        .with_for_update(skip_locked=True)
    )
    rows = (
        sa.delete(ended_run)
        .where(ended_run.c.run_id.in_(next_ones))
        .returning(ended_run.c.run_id, ended_run.c.workspace_id)
        .cte("noted")
    )
    ends = ends_of(rows).cte("ends")
    added = [_added(sums, ends).cte(sums.name + "_added") for sums in _KINDS_OF_SUMS]
    if counted_attributes:
        added.append(_counted(rows, counted_attributes).cte("counted"))
    number = sa.select(sa.func.count()).select_from(rows).add_cte(*added)
    return int(await work.scalar(number))


async def purge_sums(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Delete up to `limit` sums that are past their time; return the number. Repeat until 0."""
    for sums in _KINDS_OF_SUMS:
        key = sums.primary_key.columns
        old = sa.select(*key).where(
            sa.or_(*[(sums.c.grain == one) & (sums.c.start < work.now - one.kept) for one in Grain])
        )
        gone = await work.execute(
            sa.delete(sums).where(sa.func.row(*key).in_(old.limit(limit).scalar_subquery()))
        )
        if gone.rowcount:
            return gone.rowcount
    return 0


def ends_of(notes: sa.FromClause) -> sa.Select[Any]:
    """The facts that sums are made of, of the runs that were noted as ended."""
    # One run without its end must not keep all others from the sums.
    ended_at = sa.func.coalesce(RUN.completed_at, RUN.created_at)
    node = failed_node_of(notes.c.run_id).lateral("node")
    failed = RUN.status.in_([status.value for status in FAILURES])
    return (
        sa.select(
            notes.c.workspace_id,
            RUN.automation_id,
            RUN.status,
            ended_at.label("completed_at"),
            _bucket(RUN.completed_at, RUN.started_at).label("duration"),
            _bucket(RUN.started_at, RUN.created_at).label("queueing"),
            sa.func.coalesce(node.c.node_id, "").label("node_id"),
            sa.func.coalesce(node.c.error_code, "").label("error_code"),
        )
        .select_from(notes)
        .join(*run_of(notes.c.run_id))
        .outerjoin(node, failed)
    )


def period_of(
    grain: sa.ColumnElement[str], moment: sa.ColumnElement[datetime]
) -> sa.ColumnElement[Any]:
    """The begin of the period of a length that a moment lies in."""
    return sa.func.date_trunc(grain, moment, "UTC")


def _added(sums: sa.Table, ends: sa.CTE) -> Insert:
    """The statement that adds ends to the sums of a table: of their hour, and of their day."""
    grain = sa.values(sa.column("grain", sa.Text), name="grains").data(
        [(one.value,) for one in Grain]
    )
    of_period = {"grain": grain.c.grain, "start": period_of(grain.c.grain, ends.c.completed_at)}
    key = [
        of_period[one.name] if one.name in of_period else ends.c[one.name]
        for one in sums.primary_key.columns
    ]
    rows = sa.select(*key, sa.func.count()).select_from(ends.join(grain, sa.true())).group_by(*key)
    if sums is failure_statistic:
        rows = rows.where(ends.c.status.in_([status.value for status in FAILURES]))
    # In the order of the key: who else adds to the same sums takes their locks alike.
    statement = insert(sums).from_select(
        [*sums.primary_key.columns.keys(), "runs"], rows.order_by(*key)
    )
    return statement.on_conflict_do_update(
        index_elements=sums.primary_key.columns.keys(),
        set_={"runs": sums.c.runs + statement.excluded.runs},
    )


def _counted(notes: sa.CTE, listed: Mapping[str, Sequence[str]]) -> Insert:
    """The statement that counts runs by the attributes that metrics tell."""
    values_of = sa.literal({key: list(each) for key, each in listed.items()}, JSONB)
    keys = sa.func.jsonb_object_keys(values_of).table_valued("key").render_derived("listed")
    key = keys.c.key
    own = RUN.attributes.op("->>")(key)
    value = sa.case((values_of.op("->")(key).op("?")(own), own), else_=OTHER)
    labels = (key, value, RUN.status)
    rows = (
        sa.select(*labels, sa.func.count())
        .select_from(notes.join(*run_of(notes.c.run_id)))
        .join(keys, RUN.attributes.op("?")(key))
        .group_by(*labels)
        .order_by(*labels)
    )
    statement = insert(attribute_count).from_select(["key", "value", "status", "runs"], rows)
    return statement.on_conflict_do_update(
        index_elements=["key", "value", "status"],
        set_={"runs": attribute_count.c.runs + statement.excluded.runs},
    )


def _bucket(end: sa.ColumnElement[Any], begin: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    elapsed = sa.func.extract("epoch", end - begin) * 1000
    # Clocks of two processes may differ. NULL, of a run that never began, must stay one.
    elapsed = sa.case((elapsed < 0, 0), else_=elapsed)
    bucket = sa.func.floor(sa.func.ln(elapsed + 1) / sa.func.ln(sa.literal(BASE)))
    return sa.func.coalesce(sa.cast(bucket, sa.SmallInteger), NEVER)


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

    by: Grain
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

    by: Grain
    since: datetime
    until: datetime


def span(now: datetime, by: Grain, since: datetime | None, until: datetime | None) -> Span:
    """The whole periods that hold a time, the newest ones by default.

    Raises ValidationError for one that ends before it begins, and for too many periods.
    """
    try:
        last = by.end_of(until or now)
        first = last - by.length * by.usual if since is None else by.start_of(since)
    except OverflowError:
        raise ValidationError.at("until", "Choose a time from the year 2 to 9998.") from None
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
        sa.select(attribute_count).order_by(*attribute_count.primary_key.columns)
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
    p50, p95, p99 = (percentile(counts, share) for share in (0.5, 0.95, 0.99))
    if p50 is None or p95 is None or p99 is None:
        return None
    return Percentiles(p50=p50, p95=p95, p99=p99)


def _sums(actor: Actor, automations: sa.Select[Any], over: Span) -> sa.Select[Any]:
    """The sums of each period by outcome, by duration and by time in the queue."""
    names = ("start", "status", "duration", "queueing")
    settled = sa.select(
        *[run_statistic.c[name] for name in names],
        run_statistic.c.runs,
    ).where(*_within(run_statistic, actor, automations, over))
    ends = _ends(actor, automations, over)
    start = period_of(sa.literal(over.by.value), ends.c.completed_at)
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
        *[failure_statistic.c[name] for name in names],
        failure_statistic.c.runs,
    ).where(*_within(failure_statistic, actor, automations, over))
    ends = _ends(actor, automations, over)
    failed = ends.c.status.in_([status.value for status in FAILURES])
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
        sa.select(ended_run).where(ended_run.c.workspace_id == actor.workspace_id).subquery("late")
    )
    ends = ends_of(late).subquery("ends")
    return (
        sa.select(ends)
        .where(
            ends.c.automation_id.in_(automations),
            ends.c.completed_at >= over.since,
            ends.c.completed_at < over.until,
        )
        .subquery("late_ends")
    )
