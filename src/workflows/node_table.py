"""The node table an operator sees as the current details of a run in the Temporal UI."""

from activities.contracts import NodeEnd, NodeState
from models.automations.rules.course import Course
from models.automations.rules.plan import Plan
from models.automations.rules.protocol import NodeRef

_MARKS = {
    "running": "▶",
    "waiting": "⏸",
    "succeeded": "✔",
    "failed": "✖",
    "skipped": "-",
    "cancelled": "⊘",
}
_FAILED = frozenset({NodeState.FAILED, NodeState.ABORTED})


class NodeTable:
    """States of nodes by scope, rendered as Markdown; nodes not reached yet are not shown."""

    def __init__(self, plan: Plan) -> None:
        self._nodes = plan.nodes_by_id()
        self._states: dict[NodeRef, tuple[str, int]] = {}

    def end(self, end: NodeEnd) -> None:
        """A node has ended."""
        state = "failed" if end.reply.state in _FAILED else "succeeded"
        self._states[end.ref] = (state, end.reply.attempt)

    def park(self, ref: NodeRef) -> None:
        """A node waits."""
        self._states[ref] = ("waiting", 1)

    def follow(self, course: Course) -> None:
        """Take over what the course says of the other nodes."""
        active = set(course.active)
        for ref in course.active:
            self._states.setdefault(ref, ("running", 1))
        for ref in course.skipped:
            self._states[ref] = ("skipped", 0)
        for ref, (state, attempt) in self._states.items():
            if state in {"running", "waiting"} and ref not in active:
                self._states[ref] = ("cancelled", attempt)

    def markdown(self) -> str:
        """A table with one line per node, in the order they were reached."""
        lines = ["| Node | Kind | State | Attempt |", "|---|---|---|---|"]
        for ref, (state, attempt) in self._states.items():
            node = self._nodes[ref.node_id]
            label = " ".join((node.label or node.id).split()).replace("|", "\\|")
            scope = f" `{ref.scope_key}`" if ref.scope_key else ""
            shown = attempt or "-"
            lines.append(f"| {label}{scope} | {node.kind} | {_MARKS[state]} {state} | {shown} |")
        return "\n".join(lines)
