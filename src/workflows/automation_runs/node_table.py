"""The node table an operator sees as the current details of a run in the Temporal UI."""

from collections.abc import Iterable

from activities.contracts import LoopProgress, NodeEnd, NodeState
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.planner.plan_state import PlanState
from models.automation.automations.rules.planner.protocol import NodeRef
from workflows.marks import MARKS

_FAILED = frozenset({NodeState.FAILED, NodeState.ABORTED})


class NodeTable:
    """One line per node: its state; how far a loop is; in iterations, how many are in each state.

    Nodes not reached yet are not shown.
    """

    def __init__(self, plan: Plan, scope_key: str = "") -> None:
        self._nodes = plan.nodes_by_id()
        self._scope_key = scope_key
        self._states: dict[str, tuple[str, int]] = {}
        self._inside: dict[str, dict[str, int]] = {}
        """Of nodes in iterations: how many ended how, and how many are open."""
        self._progress: dict[str, str] = {}
        self._parked: set[NodeRef] = set()

    def end(self, end: NodeEnd) -> None:
        if end.iterations is not None:
            return
        state = "failed" if end.reply.state in _FAILED else "succeeded"
        self._parked.discard(end.ref)
        if end.scope_key == self._scope_key:
            self._states[end.node_id] = (state, end.reply.attempt)
        else:
            counts = self._inside.setdefault(end.node_id, {})
            counts[state] = counts.get(state, 0) + 1

    def park(self, ref: NodeRef) -> None:
        self._parked.add(ref)

    def unpark(self, ref: NodeRef) -> None:
        self._parked.discard(ref)

    def follow(self, plan_state: PlanState, loops: Iterable[LoopProgress] = ()) -> None:
        """Show what the plan state says of the other nodes, and the progress of loops."""
        active = plan_state.active
        self._parked.intersection_update(active)
        for counts in self._inside.values():
            counts.update(running=0, waiting=0)
        for ref in active:
            self._show_open(ref, plan_state)
        going = {ref.node_id for ref in active if ref.scope_key == self._scope_key}
        for ref in plan_state.skipped:
            self._states[ref.node_id] = ("skipped", 0)
        for node_id, (state, attempt) in self._states.items():
            if state in {"running", "waiting"} and node_id not in going:
                self._states[node_id] = ("cancelled", attempt)
        for loop in loops:
            if loop.scope_key == self._scope_key:
                self._progress[loop.node_id] = _share(loop.ended, loop.count)

    def _show_open(self, ref: NodeRef, plan_state: PlanState) -> None:
        state = "waiting" if ref in self._parked else "running"
        if ref.scope_key != self._scope_key:
            counts = self._inside.setdefault(ref.node_id, {})
            counts[state] = counts.get(state, 0) + 1
            return
        self._states[ref.node_id] = (state, 1)
        loop = plan_state.iterations(ref)
        if loop is not None:
            self._progress[ref.node_id] = _share(loop.ended, None if loop.more else loop.count)

    def markdown(self) -> str:
        """A table with one line per node, in the order they were reached."""
        lines = ["| Node | Kind | State | Attempt |", "|---|---|---|---|"]
        for node_id, (state, attempt) in self._states.items():
            shown = f"{MARKS[state]} {state} {self._progress.get(node_id, '')}".rstrip()
            lines.append(f"| {self._named(node_id)} | {shown} | {attempt or '-'} |")
        for node_id, counts in self._inside.items():
            shown = " · ".join(f"{MARKS[state]} {counts[state]}" for state in MARKS
                               if counts.get(state))  # fmt: skip
            lines.append(f"| {self._named(node_id)} | {shown} | - |")
        return "\n".join(lines)

    def _named(self, node_id: str) -> str:
        node = self._nodes[node_id]
        label = " ".join((node.label or node.id).split()).replace("|", "\\|")
        return f"{label} | {node.kind}"


def _share(ended: int, count: int | None) -> str:
    """The progress of a loop; the count of a repeat is not known."""
    return str(ended) if count is None else f"{ended}/{count}"
