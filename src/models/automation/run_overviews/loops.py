"""The progress of a run's loops, from the node runs of their iterations."""

import re
from collections.abc import Collection
from typing import Any

from sqlalchemy import case, func, select

from models.automation.automation_runs.rules import OPEN_NODE
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.joins import GRAPH, graph_of
from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass, NodeKind
from models.automation.automations.rules.planner.plan import Plan
from models.automation.run_overviews.shapes import Iterations
from models.core.base import Id
from runtime.database import UnitOfWork

_node = node_run.c
_ITEMS = case(
    (
        func.jsonb_typeof(_node.input["items"]) == "array",
        func.jsonb_array_length(_node.input["items"]),
    )
)
"""The number of items a loop was given; null for one without a list."""


async def loops_of(work: UnitOfWork, workspace_id: Id, run_id: Id) -> Collection[str]:
    """The ids of the loops in a run's graph."""
    document = await work.scalar(
        select(GRAPH.plan)
        .select_from(automation_run)
        .join(*graph_of(automation_run))
        .where(automation_run.c.workspace_id == workspace_id, automation_run.c.id == run_id)
    )
    plan = None if document is None else Plan.from_json(document)
    return [
        node.id
        for node in (() if plan is None else plan.nodes)
        if NODE_KINDS[NodeKind(node.kind)].cost is CostClass.LOOP
    ]


async def iterations(
    work: UnitOfWork, workspace_id: Id, run_id: Id, loops: Collection[str]
) -> dict[str, Iterations]:
    """The progress of the opened loops, by id; an inner loop counts all its iterations."""
    if not loops:
        return {}
    rows = await work.rows(
        select(
            _node.node_id,
            func.sum(_ITEMS).label("total"),
        )
        .where(
            _node.workspace_id == workspace_id,
            _node.run_id == run_id,
            _node.node_id.in_(list(loops)),
        )
        .group_by(_node.node_id)
    )
    return {
        row.node_id: Iterations(
            done=await _done(work, workspace_id, run_id, row.node_id),
            total=None if row.total is None else int(row.total),
        )
        for row in rows
    }


async def _done(work: UnitOfWork, workspace_id: Id, run_id: Id, loop: str) -> int:
    """The number of iterations that began and have no open node run.

    An iteration between two nodes counts, too.
    """
    inside = rf"^(?:.*/)?{re.escape(loop)}:\d+"
    iteration: Any = func.substring(_node.scope_key, inside)
    scopes = (
        select(iteration)
        .where(
            _node.workspace_id == workspace_id,
            _node.run_id == run_id,
            _node.scope_key.regexp_match(inside),
        )
        .group_by(iteration)
        .having(~func.bool_or(_node.status.in_(OPEN_NODE)))
        .subquery()
    )
    return int(await work.scalar(select(func.count()).select_from(scopes)))
