"""The output of a run: what it answered, or the outputs of its leaf nodes (decisions C8)."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    FromClause,
    ScalarSelect,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal,
    select,
)

from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.answer_budget import BUDGET
from models.core.base import JsonObject

OUTPUT_LIMIT = BUDGET
"""Bytes of node outputs in a run's output. Outputs beyond it are null there."""


def first_response(nodes: FromClause) -> ScalarSelect[Any]:
    """The answer of the first respond node among the rows of a run; null if none has answered."""
    return (
        select(nodes.c.output)
        .where(nodes.c.node_kind == NodeKind.RESPOND.value, *_of_run(nodes))
        .order_by(nodes.c.completed_at, nodes.c.node_id, nodes.c.scope_key)
        .limit(1)
        .scalar_subquery()
    )


def leaf_outputs(nodes: FromClause) -> ScalarSelect[Any]:
    """The output of a run without an answer: the outputs of its succeeded leaf nodes by id.

    In the order of their ends, outputs beyond the limit are null.
    """
    leaf = (
        select(
            nodes.c.node_id,
            nodes.c.output,
            func.sum(func.octet_length(cast(nodes.c.output, Text)))
            .over(order_by=(nodes.c.completed_at, nodes.c.node_id))
            .label("bytes"),
        )
        .where(
            nodes.c.scope_key == "",
            nodes.c.node_id == func.any(bindparam("leaves", type_=ARRAY(Text))),
            *_of_run(nodes),
        )
        .subquery()
    )
    by_node = func.jsonb_object_agg(
        leaf.c.node_id, case((leaf.c.bytes <= OUTPUT_LIMIT, leaf.c.output))
    )
    return select(
        func.coalesce(by_node, literal({}, automation_run.c.output.type))
    ).scalar_subquery()


def _of_run(nodes: FromClause) -> tuple[ColumnElement[bool], ...]:
    return nodes.c.run_id == bindparam("run_id"), nodes.c.status == NodeStatus.SUCCEEDED.value


def within_limit(outputs: Mapping[str, Any]) -> JsonObject:
    """Outputs by node, null from where they exceed the limit."""
    left = OUTPUT_LIMIT
    kept: JsonObject = {}
    for node_id, output in outputs.items():
        left -= len(json.dumps(output, ensure_ascii=False).encode())
        kept[node_id] = output if left >= 0 else None
    return kept
