"""Records that runs were about: named by the payload, or written by their nodes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Select, Uuid, any_, literal, select, true, union_all

from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.ids import parse_id

_run = automation_run.c
_node = node_run.c
_WRITING = (NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD, NodeKind.DELETE_RECORD)
MOST_NODES = 1_000
"""Nodes of a run that are looked at; a loop may have many more."""
MOST_RECORDS = 100
"""Records of a run that are remembered."""


async def touched_records(work: UnitOfWork, run_ids: Sequence[Id]) -> Mapping[Id, Sequence[Id]]:
    """The ids of the records by run, as runs name them: some may be gone or never have been."""
    wanted = literal(list(run_ids), ARRAY(Uuid))
    about = select(
        _run.id.label("run_id"), _run.trigger_payload["record"]["id"].astext.label("record_id")
    ).where(_run.id == any_(wanted))
    rows = await work.rows(union_all(about, _written(wanted)))
    touched: defaultdict[Id, dict[Id, None]] = defaultdict(dict)
    for row in rows:
        record_id = None if row.record_id is None else parse_id(row.record_id)
        if record_id is not None and len(touched[row.run_id]) < MOST_RECORDS:
            touched[row.run_id][record_id] = None
    return {run_id: list(record_ids) for run_id, record_ids in touched.items()}


def _written(run_ids: ColumnElement[Any]) -> Select[Any]:
    """The records that the first nodes of runs wrote."""
    nodes = (
        select(_node.node_kind, _node.status, _node.output)
        .where(_node.run_id == _run.id)
        .order_by(_node.node_id, _node.scope_key)
        .limit(MOST_NODES)
        .lateral("nodes")
    )
    wrote = (nodes.c.node_kind.in_(_WRITING), nodes.c.status == NodeStatus.SUCCEEDED)
    record_id = nodes.c.output["record"]["id"].astext
    return (
        select(_run.id, record_id)
        .select_from(automation_run.join(nodes, true()))
        .where(_run.id == any_(run_ids), *wrote)
    )
