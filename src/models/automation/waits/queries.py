"""Reading waits; every query names the workspace (promise I6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import case, literal, select, tuple_

from models.automation.automation_runs.joins import RUN, run_of
from models.automation.automation_runs.rows import RunRow
from models.automation.automation_runs.shapes import NodeRunShape
from models.automation.automation_runs.worker_waits import WaitingNode
from models.automation.automations.rules.graph.configs import ApprovalConfig
from models.automation.automations.rules.graph.kinds import MAX_REMINDERS, NodeKind
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.stored_graphs import stored_graph
from models.automation.waits.rules.approvals import is_asked, shown
from models.automation.waits.rules.resolution import RESUMABLE
from models.automation.waits.store import read_responses
from models.automation.waits.tables import run_wait
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork


async def asks(  # where a node is
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, node_id: str, scope_key: str
) -> bool:
    """Tell whether a node that waits asks this actor to decide."""
    row = await work.first(
        select(run_wait.c.kind, run_wait.c.terms)
        .join(*run_of(run_wait.c.run_id))
        .where(
            run_wait.c.workspace_id == actor.workspace_id,
            RUN.automation_id == automation_id,
            run_wait.c.run_id == run_id,
            run_wait.c.node_id == node_id,
            run_wait.c.scope_key == scope_key,
            run_wait.c.kind == NodeKind.APPROVAL,
            run_wait.c.workflow_id.is_not(None),
        )
    )
    return row is not None and is_asked(ApprovalConfig.model_validate(row.terms), actor)


@dataclass(frozen=True, slots=True)
class RunGraph:
    """The executed graph of a run: its plan, and its nodes by id as they were saved."""

    plan: Plan
    nodes: dict[str, JsonObject]

    def parameters(self, node_id: str) -> JsonObject:
        """A node's config overlaid with its input, bindings unresolved."""
        node = self.nodes[node_id]
        return {**node.get("config", {}), **node.get("input", {})}


async def graph_of(work: UnitOfWork, run: RunRow) -> RunGraph:
    """The graph that a run executes."""
    row = await stored_graph(work, run.automation_id, run.graph_checksum)
    assert row is not None, "what was accepted is kept as long as its run"
    assert row.plan is not None, "and was compiled"
    nodes = {node["id"]: node for node in row.graph["nodes"]}
    return RunGraph(Plan.from_json(row.plan), nodes)


class _ShownWait(Protocol):
    node_id: str
    scope_key: str
    kind: str
    event_key: str | None
    terms: JsonObject
    outcome: str | None
    responses: list[JsonObject]


async def show_waits(work: UnitOfWork, actor: Actor, nodes: Sequence[NodeRunShape]) -> None:
    """Add `metadata.wait` to the node runs of one run that wait, or waited, for a response."""
    waiting = [node for node in nodes if node.node_kind in RESUMABLE]
    if not waiting:
        return
    columns = run_wait.c
    # Responses to a node that waits for an event may be large, and are not shown.
    responses = case(
        (columns.kind == NodeKind.APPROVAL, columns.responses),
        else_=literal([], columns.responses.type),
    )
    rows = await work.rows(
        select(
            *(
                columns.node_id,
                columns.scope_key,
                columns.kind,
                columns.event_key,
                columns.terms,
                columns.outcome,
            ),
            responses.label("responses"),
        ).where(
            columns.workspace_id == actor.workspace_id,
            columns.run_id == waiting[0].run_id,
            tuple_(columns.node_id, columns.scope_key).in_(
                [(node.node_id, node.scope_key) for node in waiting]
            ),
            columns.workflow_id.is_not(None),
        ),
        of=_ShownWait,
    )
    waits = {(row.node_id, row.scope_key): _shown(row) for row in rows}
    for node in waiting:
        if (wait := waits.get((node.node_id, node.scope_key))) is not None:
            node.metadata["wait"] = wait


async def due_waits(
    work: UnitOfWork, workspace_id: Id, nodes: Sequence[WaitingNode], since: datetime
) -> list[datetime]:
    """The moments at which nodes that wait were resolved, or people were to be reminded."""
    places = [
        (node.run_id, node.node_id, node.scope_key) for node in nodes if node.node_kind in RESUMABLE
    ]
    columns = run_wait.c
    rows = await work.rows(
        select(columns.created_at, columns.resolved_at, columns.terms).where(
            columns.workspace_id == workspace_id,
            tuple_(columns.run_id, columns.node_id, columns.scope_key).in_(places),
        )
    )
    due = [row.resolved_at for row in rows if row.resolved_at is not None]
    for row in rows:
        if row.resolved_at is None and (seconds := row.terms.get("reminderSeconds")):
            told = max(0, (since - row.created_at) // timedelta(seconds=seconds))
            reminder = row.created_at + (told + 1) * timedelta(seconds=seconds)
            due += [reminder] if told < MAX_REMINDERS and reminder <= work.now else []
    return due


def _shown(row: _ShownWait) -> JsonObject:
    if row.kind == NodeKind.WAIT_EVENT:
        by_url = row.terms.get("resumeUrl", True)
        return _present({"eventKey": row.event_key, "byUrl": by_url, "resolution": row.outcome})
    wait = {
        **{name: row.terms.get(name) for name in ("assignees", "role", "form")},
        "required": row.terms.get("required", 1),
        "allowEditors": row.terms.get("allowEditors", True),
        "decisions": [_present(one) for one in shown(read_responses(row))],
        "resolution": row.outcome,
    }
    return _present(wait)


def _present(found: JsonObject) -> JsonObject:
    """The keys that have a value; on the wire the rest is absent."""
    return {key: one for key, one in found.items() if one is not None}
