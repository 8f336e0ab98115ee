"""The part of a plan that a run executes, and the ends of an earlier run that it reuses (D3)."""

from collections.abc import Mapping
from dataclasses import dataclass

from models.automation.automation_runs.rules import NodeStatus
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.planner.plan_state import PlanState
from models.automation.automations.rules.planner.protocol import NodeFailed, NodeRef, NodeSucceeded
from models.automation.automations.rules.planner.topology import topology_of
from models.core.base import JsonObject


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
    """The part of a plan that a run with these options executes (decisions D3).

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
