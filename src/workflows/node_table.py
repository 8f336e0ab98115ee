"""The node table an operator sees as the current details of a run in the Temporal UI."""

from collections.abc import Iterable

from models.automations.rules.plan import Plan
from models.automations.rules.protocol import NodeRef

_MARKS = {
    "running": "▶", "waiting": "⏸", "succeeded": "✔", "failed": "✖", "skipped": "-",
    "cancelled": "⊘",
}  # fmt: skip


class NodeTable:
    """States of nodes by scope, rendered as Markdown; nodes that have not started are not shown."""

    def __init__(self, plan: Plan) -> None:
        self._labels = {node.id: node.label or node.id for node in plan.nodes}
        self._kinds = {node.id: node.kind for node in plan.nodes}
        self._states: dict[NodeRef, tuple[str, int]] = {}

    def set(self, ref: NodeRef, state: str, attempt: int = 1) -> None:
        self._states[ref] = (state, attempt)

    def set_all(self, refs: Iterable[NodeRef], state: str) -> None:
        for ref in refs:
            self.set(ref, state, self._states.get(ref, (state, 0))[1])

    def markdown(self) -> str:
        """A table with one line per node that started, in the order they did."""
        lines = ["| Node | Kind | State | Attempt |", "|---|---|---|---|"]
        for ref, (state, attempt) in self._states.items():
            scope = f" `{ref.scope_key}`" if ref.scope_key else ""
            label = self._labels[ref.node_id].replace("|", "\\|")
            kind = self._kinds[ref.node_id]
            shown = attempt or "-"
            lines.append(f"| {label}{scope} | {kind} | {_MARKS[state]} {state} | {shown} |")
        return "\n".join(lines)
