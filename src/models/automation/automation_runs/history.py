"""Looking back over runs: newest results, watched runs, executed nodes, touched records."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from models.automation.automation_runs import rules
from models.automation.automation_runs.calls import called_run_id
from models.automation.automation_runs.filters import LOOKED_THROUGH, NEWEST_FIRST, RunFilter
from models.automation.automation_runs.node_queries import BEGAN
from models.automation.automation_runs.queries import workspace_runs
from models.automation.automation_runs.tables import (
    IS_ENDED,
    IS_FAILED,
    IS_OPEN,
    automation_run,
    node_run,
)
from models.automation.automations.queries import AUTOMATION, automation_of, open_automations
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.ids import parse_id

_run = automation_run.c


class LastRun(Protocol):
    """The newest run of an automation that is no test."""

    id: Id
    automation_id: Id
    status: rules.RunStatus
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


async def last_runs_of(
    work: UnitOfWork, actor: Actor, automation_ids: Collection[Id]
) -> Mapping[Id, LastRun]:
    """The last runs by automation; the caller has found out which of these the actor sees."""
    ids = sa.select(
        sa.func.unnest(sa.literal(list(automation_ids), sa.ARRAY(sa.Uuid))).label("automation_id")
    ).subquery("wanted")
    newest = (
        sa.select(
            _run.id,
            _run.automation_id,
            _run.status,
            _run.created_at,
            _run.started_at,
            _run.completed_at,
        )
        .where(
            _run.workspace_id == actor.workspace_id,
            _run.automation_id == ids.c.automation_id,
            _run.source != rules.RunSource.TEST,
        )
        .order_by(_run.created_at.desc(), _run.id.desc())
        .limit(1)
        .correlate(ids)
        .lateral("newest")
    )
    statement = sa.select(newest).select_from(ids.join(newest, sa.true()))
    rows = await work.rows(statement, of=LastRun)
    return {row.automation_id: row for row in rows}


_LOOKED_AT = 100
"""The newest runs of an automation that are read at most."""

_LARGEST_PAYLOAD = 64 * 1024
"""Bytes, as they are stored, of a payload that a person is offered."""


class RecentPayload(Protocol):
    """A payload, and the newest run that had it."""

    id: Id
    created_at: datetime
    trigger_payload: JsonObject


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The newest ended runs of an automation that are no tests, and the number that succeeded."""

    ended: int
    succeeded: int
    since: datetime
    """The time at which the first of them was accepted."""

    @property
    def percent(self) -> int:
        return round(100 * self.succeeded / self.ended)


async def recent_payloads(
    work: UnitOfWork, actor: Actor, automation_id: Id, most: int
) -> Sequence[RecentPayload]:
    """The last distinct payloads of an automation that the actor sees, the newest first."""
    newest = (
        sa.select(_run.id, _run.created_at, _run.trigger_payload)
        .where(_run.workspace_id == actor.workspace_id, _run.automation_id == automation_id)
        .order_by(_run.created_at.desc(), _run.id.desc())
        .limit(_LOOKED_AT)
        .subquery("newest")
    )
    different = (
        sa.select(newest)
        .ext(distinct_on(newest.c.trigger_payload))
        .where(sa.func.pg_column_size(newest.c.trigger_payload) <= _LARGEST_PAYLOAD)
        .order_by(newest.c.trigger_payload, newest.c.created_at.desc(), newest.c.id.desc())
        .subquery("different")
    )
    ordered = sa.select(different).order_by(different.c.created_at.desc(), different.c.id.desc())
    return await work.rows(ordered.limit(most), of=RecentPayload)


async def recent_outcomes(
    work: UnitOfWork, actor: Actor, automation_ids: Collection[Id], most: int
) -> Mapping[Id, Outcomes]:
    """The outcomes by automation; the caller has found out which of these the actor sees."""
    ids = sa.select(
        sa.func.unnest(sa.literal(list(automation_ids), sa.ARRAY(sa.Uuid))).label("automation_id")
    ).subquery("wanted")
    newest = (
        sa.select(_run.status, _run.source, _run.created_at)
        .where(_run.workspace_id == actor.workspace_id, _run.automation_id == ids.c.automation_id)
        .order_by(_run.created_at.desc(), _run.id.desc())
        .limit(_LOOKED_AT)
        .correlate(ids)
        .subquery("newest")
    )
    endings = (
        sa.select(newest.c.status, newest.c.created_at)
        .where(newest.c.status.in_(rules.ENDED_RUN), newest.c.source != rules.RunSource.TEST)
        .limit(most)
        .lateral("ended")
    )
    succeeded = sa.func.count().filter(endings.c.status == rules.RunStatus.SUCCEEDED)
    since = sa.func.min(endings.c.created_at).label("since")
    counts = sa.func.count().label("ended"), succeeded.label("succeeded"), since
    rows = await work.rows(
        sa.select(ids.c.automation_id, *counts)
        .select_from(ids.join(endings, sa.true()))
        .group_by(ids.c.automation_id)
    )
    return {row.automation_id: Outcomes(row.ended, row.succeeded, row.since) for row in rows}


MOST_LOOKED_AT = 10_000
"""Runs of each state through which the filters are looked for."""
MOST_ENDED = 300
"""Ended runs of each state and source, the ones accepted last, that are looked at."""

_IS_NO_TEST = sa.and_(
    _run.source != rules.RunSource.TEST,
    sa.not_(_run.options.contains({"test": True})),
)


class WatchedRun(Protocol):
    """A run, and the moment by which it is watched.

    Alert rules watch runs. Each look is one statement on an index, and reads a bounded number of
    runs, however many there are. Tests are left out.
    """

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
    failed = _watched(actor, automation_id, filters).where(IS_FAILED, _run.completed_at >= since)
    order = _run.completed_at.desc()
    return await work.rows(
        _fitting_runs(failed, order, filters, "completed_at", most), of=WatchedRun
    )


async def ended_since(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    filters: RunFilter,
    since: datetime,
    statuses: Sequence[rules.RunStatus] = rules.ENDED_RUN,
) -> WatchedRun | None:
    """A run of an automation that ended since a moment in one of these states; None without any.

    Ends have no index of their own: the newest runs of each state and source are looked at.
    """
    runs = _watched(actor, automation_id, filters).where(IS_ENDED)
    sources = [source for source in rules.RunSource if source is not rules.RunSource.TEST]
    parts = [
        sa.select(
            runs.where(_run.status == status, _run.source == source)
            .order_by(_run.created_at.desc(), _run.id.desc())
            .limit(MOST_ENDED)
            .subquery()
        )
        for status in statuses
        for source in sources
    ]
    every = sa.union_all(*parts).subquery("every")
    fitting = sa.select(every.c.id, every.c.completed_at.label("moment")).where(
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
    runs = _watched(actor, automation_id, filters)
    parts = [
        sa.select(_oldest_watched(runs, filters, status, "started_at").subquery())
        for status in rules.ACTIVE_RUN
    ]
    every = sa.union_all(*parts).subquery("every")
    longest = sa.select(every).where(every.c.moment < before).order_by(every.c.moment)
    return await work.first(longest.limit(1), of=WatchedRun)


async def oldest_queued(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id | None,
    filters: RunFilter,
    before: datetime,
) -> WatchedRun | None:
    """The queued run that was accepted first, if that was before a moment."""
    runs = _watched(actor, automation_id, filters)
    queued = _oldest_watched(runs, filters, rules.RunStatus.QUEUED, "created_at").subquery()
    oldest = sa.select(queued).where(queued.c.moment < before).order_by(queued.c.moment)
    return await work.first(oldest.limit(1), of=WatchedRun)


def _watched(actor: Actor, automation_id: Id | None, filters: RunFilter) -> sa.Select[Any]:
    runs = workspace_runs(actor, Level.VIEW).where(_IS_NO_TEST, *filters.conditions())
    return runs if automation_id is None else runs.where(_run.automation_id == automation_id)


def _oldest_watched(
    runs: sa.Select[Any], filters: RunFilter, status: rules.RunStatus, moment: str
) -> sa.Select[Any]:
    """The oldest open runs of a state, with a moment; ids grow with time."""
    of_state = runs.where(IS_OPEN, _run.status == status)
    return _fitting_runs(of_state, _run.id.asc(), filters, moment, MOST_LOOKED_AT)


def _fitting_runs(
    runs: sa.Select[Any], order: sa.ColumnElement[Any], filters: RunFilter, moment: str, most: int
) -> sa.Select[Any]:
    """The first of these runs that fit what no index answers, with the moment."""
    first = runs.order_by(order).limit(MOST_LOOKED_AT).subquery()
    fitting = sa.select(first.c.id, first.c[moment].label("moment"))
    return fitting.where(*filters.searches(first.c)).limit(most)


_node = node_run.c

_LARGEST_VALUE = 64 * 1024
"""Bytes of JSON of an input or output that is read whole."""


class NodeValues(Protocol):
    """The input and output of a node; None for a value that is too large, too."""

    node_id: str
    scope_key: str
    input: JsonObject | None
    output: JsonObject | None


async def executed_nodes(
    work: UnitOfWork, actor: Actor, run_id: Id, most: int
) -> Sequence[rules.ExecutedNode]:
    """The nodes of a run in the order they began, up to a limit."""
    first = (
        sa.select(node_run)
        .where(_node.workspace_id == actor.workspace_id, _node.run_id == run_id)
        .order_by(BEGAN, _node.node_id, _node.scope_key)
        .limit(most)
        .subquery("first")
    )
    # Outside: of the nodes that are left out no value is read.
    return await work.rows(
        sa.select(
            *(first.c[name] for name in _FACTS),
            (first.c.outcome.is_not_distinct_from("reused")).label("reused"),
            sa.func.jsonb_hash_extended(first.c.input, 0).label("input_digest"),
            sa.func.jsonb_hash_extended(first.c.output, 0).label("output_digest"),
        ),
        of=rules.ExecutedNode,
    )


_FACTS = (
    "node_id",
    "scope_key",
    "node_kind",
    "status",
    "outcome",
    "case_key",
    "attempt",
    "error",
    "started_at",
    "completed_at",
)


async def node_values(
    work: UnitOfWork, actor: Actor, run_id: Id, places: Collection[tuple[str, str]]
) -> Sequence[NodeValues]:
    """The inputs and outputs of nodes, by node id and scope key."""
    values = (
        sa.case((sa.func.octet_length(sa.cast(column, sa.Text)) <= _LARGEST_VALUE, column)).label(
            column.name
        )
        for column in (_node.input, _node.output)
    )
    return await work.rows(
        sa.select(_node.node_id, _node.scope_key, *values).where(
            _node.workspace_id == actor.workspace_id,
            _node.run_id == run_id,
            sa.tuple_(_node.node_id, _node.scope_key).in_(places),
        ),
        of=NodeValues,
    )


async def last_success_before(work: UnitOfWork, run: rules.WholeRun) -> Id | None:
    """The newest run of the same automation that succeeded before a run, and is no test.

    It is looked for among ten thousand runs, however many there are.
    """
    before = (
        sa.select(_run.id, _run.status, _run.source)
        .where(
            _run.workspace_id == run.workspace_id,
            _run.automation_id == run.automation_id,
            sa.tuple_(_run.created_at, _run.id) < sa.tuple_(run.created_at, run.id),
        )
        .order_by(*NEWEST_FIRST)
        .limit(LOOKED_THROUGH)
        .subquery("before")
    )
    run_id: Id | None = await work.scalar(
        sa.select(before.c.id)
        .where(
            before.c.status == rules.RunStatus.SUCCEEDED, before.c.source != rules.RunSource.TEST
        )
        .limit(1)
    )
    return run_id


class CalledRun(Protocol):
    """A run, and what its undo asks of it."""

    id: Id
    automation_id: Id
    status: str


async def with_called_runs(
    work: UnitOfWork, workspace_id: Id, run_id: Id, most: int
) -> Sequence[CalledRun]:
    """A run and all that it called, waiting for them or not, up to `most` and one more."""
    reached: dict[Id, CalledRun] = {}
    level: Collection[Id] = {run_id}
    ids: Collection[Id] = {run_id}
    while ids and len(reached) <= most:
        rows = await work.rows(
            sa.select(_run.id, _run.automation_id, _run.status)
            .where(
                _run.workspace_id == workspace_id,
                sa.or_(_run.id == sa.any_(_ids(ids)), _run.parent_run_id == sa.any_(_ids(level))),
            )
            .limit(most + 1),
            of=CalledRun,
        )
        level = {row.id for row in rows} - reached.keys()
        reached |= {row.id: row for row in rows if row.id in level}
        ids = await _called(work, level) if level else ()
    return list(reached.values())


async def _called(work: UnitOfWork, run_ids: Collection[Id]) -> set[Id]:
    """The ids of the runs that nodes of these runs called."""
    rows = await work.rows(
        sa.select(_node.run_id, _node.node_id, _node.scope_key).where(
            _node.run_id == sa.any_(_ids(run_ids)), _node.node_kind == NodeKind.CALL_AUTOMATION
        )
    )
    return {called_run_id(row.run_id, row.node_id, row.scope_key) for row in rows}


def _ids(ids: Collection[Id]) -> sa.ColumnElement[Any]:
    return sa.literal(sorted(ids), sa.ARRAY(sa.Uuid))


class OutsideEffect(Protocol):
    """A node whose effect was outside of records, with the number of its successes and failures."""

    automation_id: Id
    automation_label: str | None
    node_id: str
    node_kind: str
    succeeded: int
    failed: int


_OUTSIDE = (
    NodeKind.HTTP_REQUEST,
    NodeKind.SEND_EMAIL,
    NodeKind.SEND_WEBHOOK,
    NodeKind.NOTIFY,
    NodeKind.ACTION,
)


async def outside_effects(
    work: UnitOfWork, actor: Actor, run_ids: Collection[Id], most: int
) -> Sequence[OutsideEffect]:
    """The nodes of runs that acted elsewhere; the actor may not see all of their automations.

    Of an automation that the actor does not see there is no label.
    """
    visible = open_automations(actor, Level.VIEW).subquery("open")
    label = sa.case((AUTOMATION.id.in_(sa.select(visible.c.id)), AUTOMATION.label))
    counts = (
        sa.func.count().filter(_node.status == rules.NodeStatus.SUCCEEDED).label("succeeded"),
        sa.func.count().filter(_node.status == rules.NodeStatus.FAILED).label("failed"),
    )
    return await work.rows(
        sa.select(
            _run.automation_id,
            label.label("automation_label"),
            _node.node_id,
            _node.node_kind,
            *counts,
        )
        .join(node_run, _node.run_id == _run.id)
        .join(*automation_of(automation_run))
        .where(
            _run.id == sa.any_(_ids(run_ids)),
            _node.node_kind.in_(_OUTSIDE),
            _node.status.in_([rules.NodeStatus.SUCCEEDED, rules.NodeStatus.FAILED]),
        )
        .group_by(
            _run.automation_id, AUTOMATION.id, AUTOMATION.label, _node.node_id, _node.node_kind
        )
        .order_by(AUTOMATION.label, _node.node_id)
        .limit(most),
        of=OutsideEffect,
    )


_WRITING = (NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD, NodeKind.DELETE_RECORD)
MOST_NODES = 1_000
"""Nodes of a run that are looked at; a loop may have many more."""
MOST_RECORDS = 100
"""Records of a run that are remembered."""


async def touched_records(work: UnitOfWork, run_ids: Sequence[Id]) -> Mapping[Id, Sequence[Id]]:
    """The ids of the records by run, as runs name them: some may be gone or never have been."""
    wanted = sa.literal(list(run_ids), sa.ARRAY(sa.Uuid))
    about = sa.select(
        _run.id.label("run_id"), _run.trigger_payload["record"]["id"].astext.label("record_id")
    ).where(_run.id == sa.any_(wanted))
    rows = await work.rows(sa.union_all(about, _written_records(wanted)))
    touched: defaultdict[Id, dict[Id, None]] = defaultdict(dict)
    for row in rows:
        record_id = None if row.record_id is None else parse_id(row.record_id)
        if record_id is not None and len(touched[row.run_id]) < MOST_RECORDS:
            touched[row.run_id][record_id] = None
    return {run_id: list(record_ids) for run_id, record_ids in touched.items()}


async def written_record_ids(work: UnitOfWork, run_ids: Sequence[Id]) -> set[Id]:
    """The ids of the records that the first nodes of these runs wrote, as far as they are ids."""
    rows = await work.rows(_written_records(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid))))
    return {parsed for row in rows if row.record_id and (parsed := parse_id(row.record_id))}


def _written_records(run_ids: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """The records that the first nodes of runs wrote."""
    nodes = (
        sa.select(_node.node_kind, _node.status, _node.output)
        .where(_node.run_id == _run.id)
        .order_by(_node.node_id, _node.scope_key)
        .limit(MOST_NODES)
        .lateral("nodes")
    )
    wrote = (nodes.c.node_kind.in_(_WRITING), nodes.c.status == rules.NodeStatus.SUCCEEDED)
    record_id = nodes.c.output["record"]["id"].astext
    return (
        sa.select(_run.id, record_id.label("record_id"))
        .select_from(automation_run.join(nodes, sa.true()))
        .where(_run.id == sa.any_(run_ids), *wrote)
    )
