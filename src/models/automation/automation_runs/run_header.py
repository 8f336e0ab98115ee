"""The header of a run, the part of a plan that it executes, and its output."""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automation_runs.node_writes import RUN_IS_OPEN
from models.automation.automation_runs.rules import NodeStatus, RunSource, is_test
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.planner.planner import PlanState, topology_of
from models.automation.automations.rules.planner.protocol import NodeFailed, NodeRef, NodeSucceeded
from models.core.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.core.pagination import ANSWER_BUDGET
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork, Work
from runtime.postgresql.statements import PreparedStatement


def automation_actor(
    workspace_id: Id,
    automation_id: Id,
    user_id: Id | None = None,
    run_chain: tuple[Id, ...] = (),
    node_id: str | None = None,
) -> Actor:
    """The actor of an automation's runs; `user_id` is the user who started the run, if any.

    `run_chain` are the runs that led to what it does; the last of them is the run that acts, by its
    node `node_id`.
    """
    return Actor(
        principal=Principal(
            type=PrincipalType.SYSTEM,
            id=automation_id,
            user_id=user_id or automation_id,
            run_id=run_chain[-1] if run_chain else None,
            run_chain=run_chain,
            node_id=node_id,
        ),
        workspace_id=workspace_id,
        role=Role.EDITOR,
        scopes=ROLE_SCOPES[Role.EDITOR],
    )


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The columns of a run that no execution changes once it has begun.

    `graph_checksum`, `trigger_payload` and `options` change while it waits, and nothing else, if it
    is moved to another graph (`open_runs`).
    """

    run_id: Id
    workspace_id: Id
    automation_id: Id
    graph_checksum: str
    source: str
    trigger_payload: JsonObject
    options: JsonObject
    start_node_id: str | None
    created_by_user_id: Id | None
    started_at: datetime
    chain: list[Id]
    """The runs that led to this one, oldest first."""
    concurrency_key: str | None
    """The key of the slot it holds, if its automation's runs are limited."""
    parent_run_id: Id | None
    """The run that starts it and waits for it."""

    @property
    def actor(self) -> Actor:
        """The actor of this run: the platform, with an editor's rights in the run's workspace."""
        return self.actor_of(None)

    def actor_of(self, node_id: str | None) -> Actor:
        """The actor of this run, in the name of a node."""
        return automation_actor(
            self.workspace_id,
            self.automation_id,
            self.created_by_user_id,
            (*self.chain, self.run_id),
            node_id,
        )

    @property
    def is_test(self) -> bool:
        """True when mocks hold (interface.md#test-runs)."""
        return is_test(self.source, self.options)

    @property
    def is_started_by_relay(self) -> bool:
        """True when the outbox starts it, instead of a workflow: its caller's or a schedule's."""
        return self.parent_run_id is None and self.source != RunSource.SCHEDULE

    @property
    def ends_alone(self) -> bool:
        """True when its success is one statement: it frees no slot and reuses no outputs."""
        return self.concurrency_key is None and not self.options.get("reused")

    @property
    def replayed_run_ids(self) -> list[Id]:
        """The run this one replays, the one that replayed, and so on."""
        return [uuid.UUID(run_id) for run_id in self.options.get("replays", ())]

    @property
    def variable(self) -> JsonObject:
        """The `run` variable of bindings and expressions (interface.md#bindings)."""
        return {
            "id": str(self.run_id),
            "startedAt": wire_timestamp(self.started_at),
            "source": self.source,
            "workspaceId": str(self.workspace_id),
        }


def header_columns() -> tuple[sa.ColumnElement[Any], ...]:
    """The columns `RunHeader` is made of, in its order."""
    run = automation_run.c
    return (
        run.id,
        run.workspace_id,
        run.automation_id,
        run.graph_checksum,
        run.source,
        run.trigger_payload,
        run.options,
        run.start_node_id,
        run.created_by_user_id,
        run.started_at,
        run.chain,
        run.concurrency_key,
        run.parent_run_id,
    )


def read_header(row: Sequence[Any]) -> RunHeader:
    """The header in a row of `header_columns`."""
    return RunHeader(*tuple(row))


_HEADER = PreparedStatement(sa.select(*header_columns()).where(RUN_IS_OPEN))

_RUN_IDS = sa.bindparam("run_ids", type_=sa.ARRAY(sa.Uuid))
_SCOPES = sa.bindparam("scopes", type_=sa.ARRAY(sa.Text))
_ENDED_WELL = node_run.c.status == NodeStatus.SUCCEEDED
_REASON = sa.func.jsonb_build_object(
    "error", node_run.c.error, "errorCode", node_run.c.error_code, type_=node_run.c.output.type
)
_FAILURE = sa.func.coalesce(node_run.c.output, sa.literal({}, node_run.c.output.type)).concat(
    _REASON
)
"""The object that bindings read of a failed node: its reason beside what came of it."""
_OUTPUTS = (
    sa.select(
        node_run.c.node_id,
        node_run.c.scope_key,
        node_run.c.run_id,
        _ENDED_WELL.label("succeeded"),
        sa.case((_ENDED_WELL, node_run.c.output), else_=_FAILURE).label("output"),
    )
    .where(
        node_run.c.workspace_id == sa.bindparam("workspace_id"),
        node_run.c.run_id == sa.func.any(_RUN_IDS),
        node_run.c.scope_key == sa.func.any(_SCOPES),
        node_run.c.status
        == sa.func.any(sa.literal([NodeStatus.SUCCEEDED, NodeStatus.FAILED], sa.ARRAY(sa.Text))),
    )
    .order_by(
        sa.func.array_position(_RUN_IDS, node_run.c.run_id).desc(),
        sa.func.array_position(_SCOPES, node_run.c.scope_key).desc(),
    )
)
_ALL_OUTPUTS = PreparedStatement(_OUTPUTS)
_SOME_OUTPUTS = PreparedStatement(
    _OUTPUTS.where(
        node_run.c.node_id == sa.func.any(sa.bindparam("node_ids", type_=sa.ARRAY(sa.Text)))
    )
)


async def load_header(work: Work, run_id: Id) -> RunHeader | None:
    """The header of a run that has begun and is open; None otherwise."""
    row = await _HEADER.first(work, {"run_id": run_id})
    return None if row is None else read_header(row)


class NodeOutput(Protocol):
    """The output of a node that ended; of one that failed, its error."""

    node_id: str
    scope_key: str
    run_id: Id
    succeeded: bool
    output: JsonObject


async def load_outputs(
    work: Work, header: RunHeader, node_ids: Collection[str] | None, scopes: Sequence[str]
) -> Sequence[NodeOutput]:
    """Outputs of the nodes that ended in these scopes; failed nodes have `error` and `errorCode`.

    `node_ids` None asks for every node. Of several rows of a node the last one counts: this run's
    rows come after the rows of the runs it replays (interface.md#runs-again), the rows of scopes
    named first after the others.
    """
    parameters = {
        "workspace_id": header.workspace_id,
        "run_ids": [header.run_id, *header.replayed_run_ids],
        "scopes": list(scopes),
    }
    if node_ids is None:
        return await _ALL_OUTPUTS.rows(work, parameters)
    return await _SOME_OUTPUTS.rows(work, {**parameters, "node_ids": sorted(node_ids)})


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """The end of the node that decided the end of a run."""

    output: JsonObject | None
    error: str | None

    @property
    def reason(self) -> str:
        """The reason why a run failed here: the node's error, or the message of a stop node."""
        return self.error or (self.output or {}).get("message") or "The run was stopped as failed."


async def node_end(work: UnitOfWork, run_id: Id, node_id: str, scope_key: str) -> NodeEnd:
    row = await work.first(
        sa.select(node_run.c.output, node_run.c.error).where(
            node_run.c.run_id == run_id,
            node_run.c.node_id == node_id,
            node_run.c.scope_key == scope_key,
        )
    )
    return NodeEnd(*tuple(row)) if row is not None else NodeEnd(None, None)


def starts_of(plan: Plan, start_node_id: str | None, options: JsonObject) -> list[tuple[str, str]]:
    """The nodes in scopes at which a run begins; none for a run of the whole plan.

    Raises KeyError when the plan has no such node.
    """
    if "starts" in options:
        return [(node_id, scope_key) for node_id, scope_key in options["starts"]]
    if start_node_id is None:
        return []
    index = (options.get("scope") or {}).get("index") or 0
    return [(start_node_id, options.get("scopeKey") or plan.scope_of(start_node_id, index))]


def executed_plan(plan: Plan, start_node_id: str | None, options: JsonObject) -> Plan:
    """The part of a plan that a run with these options executes (interface.md#runs-from-a-node).

    Raises KeyError when the plan has no such node or scope.
    """
    if starts := starts_of(plan, start_node_id, options):
        only = options.get("only")
        plan = plan.restricted(starts, None if only is None else frozenset(only))
    if (last := options.get("stopAtNodeId")) is not None:
        plan = plan.until(last)
    return plan


@dataclass(frozen=True, slots=True)
class Reused:
    """The end of a node in an earlier run, reused as its end in this run. Only outside loops."""

    node_id: str
    succeeded: bool
    outcome: str
    case_key: str | None

    @property
    def event(self) -> NodeSucceeded | NodeFailed:
        """The end as an event for the planner."""
        ref = NodeRef(self.node_id)
        return (
            NodeSucceeded(ref, self.outcome, self.case_key) if self.succeeded else NodeFailed(ref)
        )

    def to_json(self) -> list[str | bool | None]:
        """The form in which a run's options hold it."""
        return [self.node_id, self.succeeded, self.outcome, self.case_key]


def read_reused(options: JsonObject) -> list[Reused]:
    """The ends that a run reuses, in the order in which they are applied."""
    return [Reused(*row) for row in options.get("reused", ())]


@dataclass(frozen=True, slots=True)
class FirstNode:
    """A node that starts as soon as its run does."""

    node_id: str
    scope_key: str
    kind: str


def changes_start(start_node_id: str | None, options: JsonObject) -> bool:
    """True when a run with these options may begin elsewhere than its plan does."""
    return start_node_id is not None or not options.keys().isdisjoint(_CHANGE_START)


_CHANGE_START = ("starts", "stopAtNodeId", "reused", "refusal")


def first_nodes(plan: Plan, start_node_id: str | None, options: JsonObject) -> list[FirstNode]:
    """The nodes that a run of this plan starts with; none for a run that is refused."""
    if "refusal" in options:
        return []
    executed = executed_plan(plan, start_node_id, options)
    plan_state, nodes = PlanState(executed), executed.nodes_by_id()
    for one in read_reused(options):
        plan_state.apply(one.event)
    return [
        FirstNode(ref.node_id, ref.scope_key, nodes[ref.node_id].kind) for ref in plan_state.active
    ]


def reusable(plan: Plan, ends: Mapping[str, Reused]) -> list[Reused] | None:
    """The ends of an earlier run that this run can reuse; None when they complete the plan.

    The active nodes are then those where the earlier run failed or stopped. A failure is reused
    only where an edge handles it. Stop nodes are never reused.
    """
    plan_state, topology = PlanState(plan), topology_of(plan)
    nodes, remaining = plan.nodes_by_id(), dict(ends)
    reused_ends: list[Reused] = []

    def stands(node_id: str) -> bool:
        end = remaining.get(node_id)
        if end is None or nodes[node_id].kind == NodeKind.STOP:
            return False
        return end.succeeded or topology.handles_failure(node_id)

    while plan_state.ending is None:
        ready = [
            ref.node_id for ref in plan_state.active if not ref.scope_key and stands(ref.node_id)
        ]
        if not ready:
            return reused_ends
        for node_id in ready:
            reused_ends.append(remaining.pop(node_id))
            plan_state.apply(reused_ends[-1].event)
    return None


def ended_nodes(rows: Mapping[str, tuple[str, str | None, str | None]]) -> dict[str, Reused]:
    """The ends in node runs outside loops, given as status, outcome and case key by node."""
    return {
        node_id: Reused(node_id, status == NodeStatus.SUCCEEDED, outcome or "always", case_key)
        for node_id, (status, outcome, case_key) in rows.items()
        if status in {NodeStatus.SUCCEEDED, NodeStatus.FAILED}
    }


OUTPUT_LIMIT = ANSWER_BUDGET
"""Bytes of node outputs in a run's output. Outputs beyond it are null there."""


def first_response(nodes: sa.FromClause) -> sa.ScalarSelect[Any]:
    """The answer of the first respond node among the rows of a run; null if none has answered."""
    return (
        sa.select(nodes.c.output)
        .where(nodes.c.node_kind == NodeKind.RESPOND.value, *_of_run(nodes))
        .order_by(nodes.c.completed_at, nodes.c.node_id, nodes.c.scope_key)
        .limit(1)
        .scalar_subquery()
    )


def leaf_outputs(nodes: sa.FromClause) -> sa.ScalarSelect[Any]:
    """The output of a run without an answer: the outputs of its succeeded leaf nodes by id.

    In the order of their ends, outputs beyond the limit are null.
    """
    leaf = (
        sa.select(
            nodes.c.node_id,
            nodes.c.output,
            sa.func.sum(sa.func.octet_length(sa.cast(nodes.c.output, sa.Text)))
            .over(order_by=(nodes.c.completed_at, nodes.c.node_id))
            .label("bytes"),
        )
        .where(
            nodes.c.scope_key == "",
            nodes.c.node_id == sa.func.any(sa.bindparam("leaves", type_=sa.ARRAY(sa.Text))),
            *_of_run(nodes),
        )
        .subquery()
    )
    by_node = sa.func.jsonb_object_agg(
        leaf.c.node_id, sa.case((leaf.c.bytes <= OUTPUT_LIMIT, leaf.c.output))
    )
    return sa.select(
        sa.func.coalesce(by_node, sa.literal({}, automation_run.c.output.type))
    ).scalar_subquery()


def _of_run(nodes: sa.FromClause) -> tuple[sa.ColumnElement[bool], ...]:
    return nodes.c.run_id == sa.bindparam("run_id"), nodes.c.status == NodeStatus.SUCCEEDED.value


def within_limit(outputs: Mapping[str, Any]) -> JsonObject:
    """Outputs by node, null from where they exceed the limit."""
    left = OUTPUT_LIMIT
    kept: JsonObject = {}
    for node_id, output in outputs.items():
        left -= len(json.dumps(output, ensure_ascii=False).encode())
        kept[node_id] = output if left >= 0 else None
    return kept
