"""Reading runs, what holds them up, and the joins for resources whose rows name one."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automation_runs import filters as automation_run_filters
from models.automation.automation_runs import node_queries, rules, shapes
from models.automation.automation_runs.calls import called_run_id
from models.automation.automation_runs.execution import FAILURES, failure_run_id
from models.automation.automation_runs.open_runs import graphs_of_open_runs, open_tree
from models.automation.automation_runs.tables import (
    IS_OPEN,
    AutomationRun,
    automation_run,
    node_run,
)
from models.automation.automations import queries as automation_queries
from models.automation.automations import references
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.access.rules import MANAGERS, Actor, Level
from models.core.base import Id, JsonObject
from models.core.lifecycle.lost_workers import waiting_for_worker_since
from models.core.pagination import Page, PageRequest, carried_rows, within_budget
from models.core.pauses.store import rests_of, waiting_for
from models.core.references.rules import Definition, Sought
from models.sources.outbound_limits.queries import waits_of
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.temporal.workflow_kinds import WorkflowKind

RUN = automation_run.c
"""The columns of runs that `run_of` joins."""
_SHOWN = [name for name in shapes.AutomationRunShape.model_fields if name != "metadata"]
OPERATION = "operationId"
"""Names the operation among the options, and in the metadata, of a run that it started."""
_HEAVY = ("trigger_payload", "output", "options")
"""The columns of a run that may be large. `options` is read with it, but not shown."""


def runs_since(workspace_id: Id, since: datetime, until: datetime | None = None) -> sa.Select[Any]:
    """The ids of the runs that a workspace accepted from one moment on, and before another."""
    return sa.select(RUN.id).where(
        RUN.workspace_id == workspace_id,
        *automation_run_filters.RunFilter(since=since, until=until).conditions(),
    )


def accepted_at(run_id: Id) -> sa.ScalarSelect[datetime]:
    """The moment at which a run was accepted."""
    return sa.select(RUN.created_at).where(RUN.id == run_id).scalar_subquery()


async def oldest_open(work: UnitOfWork, workspace_id: Id) -> datetime | None:
    """The moment at which the oldest open run of a workspace was accepted."""
    found: datetime | None = await work.scalar(
        sa.select(sa.func.min(RUN.created_at)).where(
            RUN.workspace_id == workspace_id, RUN.status.in_(rules.OPEN_RUN)
        )
    )
    return found


def last_triggered_at(automation_id: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The column of the time at which the last run of an automation was accepted; no test run."""
    return (
        sa.select(RUN.created_at)
        .where(RUN.automation_id == automation_id, RUN.source != rules.RunSource.TEST)
        .order_by(RUN.created_at.desc())
        .limit(1)
        .scalar_subquery()
    )


async def load_run(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, *, lock: bool = False
) -> AutomationRun:
    """The row of a run of this automation. Raises NotFoundError."""
    statement = runs_of(actor.workspace_id, automation_id).where(RUN.id == run_id)
    if lock:
        statement = statement.with_for_update(of=automation_run)
    return await work.one(statement, "run", of=AutomationRun)


async def is_open(work: UnitOfWork, actor: Actor, run_id: Id) -> bool:
    """True for a run of the workspace that has not ended."""
    row = RUN.workspace_id == actor.workspace_id, RUN.id == run_id
    return await work.scalar(sa.select(RUN.status).where(*row)) in rules.OPEN_RUN


async def detail(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id
) -> shapes.AutomationRunDetail:
    """A run with its node runs, in the order they began.

    Of a run with very many, the open and failed ones come first (`node_queries.shown_nodes`).
    Raises NotFoundError.
    """
    run = await load_run(work, actor, automation_id, run_id)
    nodes, trimmed = await node_queries.shown_nodes(work, actor, run_id)
    metadata = {
        **(await metadata_of(work, [run]))[run_id],
        "progress": await node_queries.progress(work, run),
        "trimmed": trimmed or node_queries.lacks_outputs(run, nodes),
    }
    metadata |= await worker_metadata(work, run)
    await node_queries.show_last_errors(work, actor, run_id, nodes)
    if not trimmed:
        begun = [node.id for node in nodes if not node.metadata.get("reused")]
        nodes += await node_queries.unbegun_nodes(work, run, begun)
    return shapes.AutomationRunDetail(**_run_fields(run, metadata), node_runs=nodes)


async def accepted_detail(
    work: UnitOfWork, run: AutomationRun, node_count: int
) -> shapes.AutomationRunDetail:
    """A run that was accepted in this transaction and needed no slot; hardly anything is read."""
    metadata = {
        **lineage(run.id, chain=run.chain, admitted_at=run.admitted_at),
        "waiting": [],
        "progress": node_queries.progress_of(0, node_count),
        "trimmed": False,
    }
    return shapes.AutomationRunDetail(
        **_run_fields(run, metadata), node_runs=await node_queries.unbegun_nodes(work, run)
    )


async def list_runs(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    page: PageRequest,
    filters: automation_run_filters.RunFilter,
) -> shapes.AutomationRunList:
    """The runs of an automation, newest first, without node runs."""
    return await _list(work, runs_of(actor.workspace_id, automation_id), page, filters)


async def list_workspace_runs(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id | None,
    page: PageRequest,
    filters: automation_run_filters.RunFilter,
) -> shapes.AutomationRunList:
    """The runs of every automation the actor sees, newest first, without node runs.

    Raises NotFoundError for an automation that the actor does not see.
    """
    if automation_id is None:
        return await _list(work, workspace_runs(actor, Level.VIEW), page, filters)
    seen = automation_queries.open_automations(actor, Level.VIEW).where(
        automation_queries.AUTOMATION.id == automation_id
    )
    if await work.scalar(seen) is None:
        raise NotFoundError("automation")
    return await list_runs(work, actor, automation_id, page, filters)


async def count_open(
    work: UnitOfWork, actor: Actor, automation_id: Id | None, most: int
) -> Mapping[rules.RunStatus, int]:
    """The open runs by status that the actor sees, each counted up to `most`."""
    runs = workspace_runs(actor, Level.VIEW).where(IS_OPEN)
    if automation_id is not None:
        runs = runs.where(RUN.automation_id == automation_id)
    parts = [
        runs.with_only_columns(RUN.status).where(RUN.status == status).limit(most).subquery()
        for status in rules.OPEN_RUN
    ]
    every = sa.union_all(*map(sa.select, parts)).subquery("every")
    rows = await work.rows(
        sa.select(every.c.status, sa.func.count().label("runs")).group_by(every.c.status)
    )
    return {rules.RunStatus(row.status): row.runs for row in rows}


def workspace_runs(actor: Actor, level: Level, *, in_trash: bool = False) -> sa.Select[Any]:
    """The runs of every automation on which the actor has a level.

    With `in_trash` the trash hides nothing from owners and administrators.
    """
    runs = sa.select(automation_run).where(RUN.workspace_id == actor.workspace_id)
    if in_trash and actor.role in MANAGERS:
        return runs
    return runs.where(RUN.automation_id.in_(automation_queries.open_automations(actor, level)))


async def _list(
    work: UnitOfWork,
    statement: sa.Select[Any],
    page: PageRequest,
    filters: automation_run_filters.RunFilter,
) -> shapes.AutomationRunList:
    if page.after is not None:
        statement = statement.where(sa.tuple_(RUN.created_at, RUN.id) < sa.tuple_(*page.after))
    last: automation_run_filters.Position | None = None
    if filters.is_searched:
        read, last = await automation_run_filters.search(
            work, statement, page.fetch, filters, _HEAVY
        )
    else:
        fitting = automation_run_filters.newest(statement, filters, page.fetch)
        read = await work.rows(
            within_budget(fitting, automation_run_filters.NEWEST_FIRST, page.fetch, _HEAVY)
        )
    rows: list[AutomationRun] = carried_rows(read)
    result = page.of(rows, lambda row: (row.created_at, row.id), cut=len(read) > len(rows))
    if result.cursor is None and last is not None:
        result = Page(result.items, page.cursor_behind(*last))
    metadata = await metadata_of(work, result.items)
    return shapes.AutomationRunList(
        runs=[
            shapes.AutomationRunShape(**_run_fields(row, metadata[row.id])) for row in result.items
        ],
        cursor=result.cursor,
        searched_until=None if last is None else last[0],
    )


def runs_of(workspace_id: Id, automation_id: Id) -> sa.Select[Any]:
    return sa.select(automation_run).where(
        RUN.workspace_id == workspace_id, RUN.automation_id == automation_id
    )


_NOTED = (OPERATION, shapes.SCHEDULE_NOTE, shapes.REDACTED_PATHS)
"""Options that are metadata, too."""


async def metadata_of(work: UnitOfWork, runs: Sequence[rules.RunRow]) -> dict[Id, JsonObject]:
    """The `metadata` of runs in lists, by run id."""
    handlers = {failure_run_id(run.id): run.id for run in runs if run.status in FAILURES}
    answered: dict[Id, str] = {}
    if handlers:
        rows = await work.rows(
            sa.select(RUN.id).where(
                RUN.workspace_id == runs[0].workspace_id, RUN.id.in_(sorted(handlers))
            )
        )
        answered = {handlers[row.id]: str(row.id) for row in rows}
    waiting = await node_queries.waits(work, runs)
    waits = await waits_of_runs(work, runs)
    return {
        run.id: {
            **lineage(
                run.id,
                parent_run_id=caller_of(run),
                chain=run.chain,
                concurrency_key=run.concurrency_key,
                admitted_at=run.admitted_at,
            ),
            **({"failureRunId": answered[run.id]} if run.id in answered else {}),
            **{key: run.options[key] for key in _NOTED if key in run.options},
            "waiting": waiting[run.id],
            **({"waitingFor": waits[run.id]} if run.id in waits else {}),
        }
        for run in runs
    }


async def worker_metadata(work: UnitOfWork, run: rules.AcceptedRow) -> JsonObject:
    """`waitingForWorkerSince` of a run that could continue; None while it waits for no worker."""
    if run.status not in rules.OPEN_RUN:
        return {}
    since = await needs_worker_since(work, run)
    return {} if since is None else {"waitingForWorkerSince": wire_timestamp(since)}


def caller_of(run: rules.RunRow) -> Id | None:
    """The run that called this one, whether it waits for it or not."""
    caller: Id | None = run.parent_run_id
    if run.source == rules.RunSource.AUTOMATION:
        # The waiter for a run may be an action that a person asked for.
        caller = run.chain[-1] if run.chain else None
    return caller


def lineage(
    run_id: Id,
    *,
    parent_run_id: Id | None = None,
    chain: Sequence[Id] = (),
    concurrency_key: str | None = None,
    admitted_at: datetime | None = None,
) -> JsonObject:
    """The metadata that says how a run is executed: workflow, chain of runs, concurrency slot."""
    metadata = {
        "temporalWorkflowId": WorkflowKind.AUTOMATION_RUN.workflow_id(run_id),
        "parentRunId": None if parent_run_id is None else str(parent_run_id),
        "chain": [str(earlier) for earlier in chain],
        "concurrencyKey": concurrency_key,
        "admittedAt": None if admitted_at is None else wire_timestamp(admitted_at),
    }
    return {key: value for key, value in metadata.items() if value is not None}


def _run_fields(row: rules.RunRow, metadata: JsonObject) -> JsonObject:
    fields = {name: getattr(row, name) for name in _SHOWN}
    return {**fields, "metadata": metadata}


MOST_WAITING_NODES = 1_000
"""Waiting nodes that are looked at."""

_node = node_run.c


class WaitingNode(Protocol):
    run_id: Id
    node_id: str
    scope_key: str
    node_kind: str
    due_at: datetime | None
    started_at: datetime | None


FindDue = Callable[
    [UnitOfWork, Id, Sequence[WaitingNode], datetime], Awaitable[Collection[datetime]]
]
"""Takes a workspace, nodes that wait, and the time at which the worker was lost. Gives the moments
from which on it had something to do for them."""

_FINDERS: list[FindDue] = []


def find_due_waits_with(find: FindDue) -> None:
    """Ask `find` for waits that are due; registering it again changes nothing."""
    if find not in _FINDERS:
        _FINDERS.append(find)


async def needs_worker_since(work: UnitOfWork, run: rules.AcceptedRow) -> datetime | None:
    """The time since which an open run needs a worker that is lost; None while it needs none."""
    lost = await waiting_for_worker_since(work, run.created_at)
    if lost is None or run.status != rules.RunStatus.WAITING:
        return lost
    due = await _due_for_worker(work, run, lost)
    return max(lost, min(due)) if due else None


async def _due_for_worker(
    work: UnitOfWork, run: rules.AcceptedRow, lost: datetime
) -> Collection[datetime]:
    """The moments from which on a worker could take on a waiting run, or one it waits for."""
    tree = open_tree(run.workspace_id, [run.id]).subquery()
    rows = await work.rows(
        sa.select(RUN.id, RUN.status, RUN.created_at).where(
            RUN.workspace_id == run.workspace_id, RUN.id.in_(sa.select(tree.c.id))
        )
    )
    open_ids = {row.id for row in rows}
    nodes: Sequence[WaitingNode] = await work.rows(
        sa.select(
            *(_node.run_id, _node.node_id, _node.scope_key),
            *(_node.node_kind, _node.due_at, _node.started_at),
        )
        .where(
            _node.workspace_id == run.workspace_id,
            _node.run_id.in_(open_ids),
            _node.status == rules.NodeStatus.WAITING,
        )
        .limit(MOST_WAITING_NODES),
        of=WaitingNode,
    )
    due = [row.created_at for row in rows if row.status != rules.RunStatus.WAITING]
    due += [node.due_at for node in nodes if node.due_at and node.due_at <= work.now]
    due += [
        node.started_at
        for node in nodes
        if node.node_kind == NodeKind.CALL_AUTOMATION
        and node.started_at
        and called_run_id(node.run_id, node.node_id, node.scope_key) not in open_ids
    ]
    for find in _FINDERS:
        due += await find(work, run.workspace_id, nodes, lost)
    return due


async def waits_of_runs(work: UnitOfWork, runs: Sequence[rules.RunRow]) -> Mapping[Id, JsonObject]:
    """`waitingFor` of the runs among these that rest, or of which a call waits."""
    queued = [run.id for run in runs if run.status == rules.RunStatus.QUEUED]
    under_way = [run.id for run in runs if run.status in rules.ACTIVE_RUN]
    if not queued and not under_way:
        return {}
    workspace_id = runs[0].workspace_id
    rests = await rests_of(work, workspace_id, queued)
    return {
        **{run_id: waiting_for(rest) for run_id, rest in rests.items()},
        **await waits_of(work, workspace_id, under_way),
    }


REPLAY = automation_run.alias("replay_run").c
"""The columns of runs beside those, which `is_replay_of` speaks of."""


def run_of(run_id: sa.ColumnElement[Id]) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the run that a column names: `select(…).join(*run_of(resource.c.run_id))`."""
    # By id alone: the primary key finds one, whatever PostgreSQL believes of a workspace's runs.
    return automation_run, RUN.id == run_id


def failed_node_of(run_id: sa.ColumnElement[Id]) -> sa.Select[Any]:
    """The node that failed last in the run that a column names, with its error and code."""
    return (
        sa.select(node_run.c.node_id, node_run.c.error_code, node_run.c.error)
        .where(node_run.c.run_id == run_id, node_run.c.status == rules.NodeStatus.FAILED)
        .order_by(node_run.c.completed_at.desc(), node_run.c.node_id)
        .limit(1)
    )


def is_replay_of(run_id: sa.ColumnElement[Id]) -> sa.ColumnElement[bool]:
    """The condition that the run in `REPLAY` retries the run that a column names."""
    return sa.and_(REPLAY.replay_of_run_id == run_id, REPLAY.source == rules.RunSource.REPLAY)


def succeeded_at(run: sa.FromClause, node_id: str | None) -> sa.ColumnElement[bool]:
    """The condition that a run succeeded at a node; without one, that the run itself did."""
    if node_id is None:
        return run.c.status == rules.RunStatus.SUCCEEDED
    return sa.exists().where(
        node_run.c.run_id == run.c.id,
        node_run.c.node_id == node_id,
        node_run.c.status == rules.NodeStatus.SUCCEEDED,
    )


async def run_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The graphs of open runs that may name a thing, each with the number of its runs."""
    forms = await references.forms_of(work, actor, sought)
    rows = await graphs_of_open_runs(work, actor, references.texts_of(sought, forms))
    return await references.definitions_of(work, actor, rows, forms)
