"""The output of a run: what it answered, or the outputs of its leaf nodes (decisions C8)."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ARRAY, Text, bindparam, case, cast, func, literal, select

from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.answer_budget import BUDGET
from models.core.base import JsonObject

OUTPUT_LIMIT = BUDGET
"""Bytes of node outputs in a run's output. Outputs beyond it are null there."""

FIRST_RESPONSE = (
    select(node_run.c.output)
    .where(
        node_run.c.run_id == bindparam("run_id"),
        node_run.c.node_kind == NodeKind.RESPOND.value,
        node_run.c.status == NodeStatus.SUCCEEDED,
    )
    .order_by(node_run.c.completed_at, node_run.c.node_id, node_run.c.scope_key)
    .limit(1)
    .scalar_subquery()
)
"""The answer of the first respond node of a run; null while none has answered."""

_leaf = (
    select(
        node_run.c.node_id,
        node_run.c.output,
        func.sum(func.octet_length(cast(node_run.c.output, Text)))
        .over(order_by=(node_run.c.completed_at, node_run.c.node_id))
        .label("bytes"),
    )
    .where(
        node_run.c.run_id == bindparam("run_id"),
        node_run.c.scope_key == "",
        node_run.c.node_id == func.any(bindparam("leaves", type_=ARRAY(Text))),
        node_run.c.status == NodeStatus.SUCCEEDED,
    )
    .subquery()
)
LEAF_OUTPUTS = select(
    func.coalesce(
        func.jsonb_object_agg(
            _leaf.c.node_id, case((_leaf.c.bytes <= OUTPUT_LIMIT, _leaf.c.output))
        ),
        literal({}, automation_run.c.output.type),
    )
).scalar_subquery()
"""The output of a run without an answer: the outputs of its succeeded leaf nodes by id, as far as
the limit goes in the order in which they ended."""


def within_limit(outputs: Mapping[str, Any]) -> JsonObject:
    """Outputs by node, null from where they exceed the limit."""
    left = OUTPUT_LIMIT
    kept: JsonObject = {}
    for node_id, output in outputs.items():
        left -= len(json.dumps(output, ensure_ascii=False).encode())
        kept[node_id] = output if left >= 0 else None
    return kept
