"""Reading the nodes of a run for a comparison: digests in place of inputs and outputs."""

from collections.abc import Collection, Sequence
from typing import Protocol

from sqlalchemy import Text, case, cast, func, select, tuple_

from models.automation.automation_runs.node_queries import BEGAN
from models.automation.automation_runs.rows import ExecutedNode, WholeRun
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_filters import NEWEST_FIRST
from models.automation.automation_runs.run_search import LOOKED_THROUGH
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork

_node = node_run.c
_run = automation_run.c
_LARGEST = 64 * 1024
"""Bytes of JSON of an input or output that is read whole."""


class NodeValues(Protocol):
    """The input and output of a node; None for a value that is too large, too."""

    node_id: str
    scope_key: str
    input: JsonObject | None
    output: JsonObject | None


async def executed_nodes(
    work: UnitOfWork, actor: Actor, run_id: Id, most: int
) -> Sequence[ExecutedNode]:
    """The nodes of a run in the order they began, at most so many."""
    first = (
        select(node_run)
        .where(_node.workspace_id == actor.workspace_id, _node.run_id == run_id)
        .order_by(BEGAN, _node.node_id, _node.scope_key)
        .limit(most)
        .subquery("first")
    )
    # Outside: of the nodes that are left out no value is read.
    return await work.rows(
        select(
            *(first.c[name] for name in _FACTS),
            (first.c.outcome.is_not_distinct_from("reused")).label("reused"),
            func.jsonb_hash_extended(first.c.input, 0).label("input_digest"),
            func.jsonb_hash_extended(first.c.output, 0).label("output_digest"),
        ),
        of=ExecutedNode,
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
        case((func.octet_length(cast(column, Text)) <= _LARGEST, column)).label(column.name)
        for column in (_node.input, _node.output)
    )
    return await work.rows(
        select(_node.node_id, _node.scope_key, *values).where(
            _node.workspace_id == actor.workspace_id,
            _node.run_id == run_id,
            tuple_(_node.node_id, _node.scope_key).in_(places),
        ),
        of=NodeValues,
    )


async def last_success_before(work: UnitOfWork, run: WholeRun) -> Id | None:
    """The newest run of the same automation that succeeded before a run, and is no test.

    It is looked for among ten thousand runs, however many there are.
    """
    before = (
        select(_run.id, _run.status, _run.source)
        .where(
            _run.workspace_id == run.workspace_id,
            _run.automation_id == run.automation_id,
            tuple_(_run.created_at, _run.id) < tuple_(run.created_at, run.id),
        )
        .order_by(*NEWEST_FIRST)
        .limit(LOOKED_THROUGH)
        .subquery("before")
    )
    run_id: Id | None = await work.scalar(
        select(before.c.id)
        .where(before.c.status == RunStatus.SUCCEEDED, before.c.source != RunSource.TEST)
        .limit(1)
    )
    return run_id
