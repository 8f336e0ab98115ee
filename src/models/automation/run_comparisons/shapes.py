"""Two runs side by side, on the wire."""

from models.automation.automation_runs.rules import NodeStatus, RunSource, RunStatus
from models.automation.run_comparisons.rules.alignment import Aspect
from models.automation.run_comparisons.rules.differences import ValueChange
from models.core.base import Id, Moment, Shape


class ComparedRun(Shape):
    """One of the two runs."""

    id: Id
    automation_version_id: Id
    version: int
    status: RunStatus
    source: RunSource
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    error: str | None


class ValueDifference(Shape):
    """A path at which two values differ.

    `before` is the value of the reference and `after` that of the run, as JSON text; of long values
    the part that differs.
    """

    path: str
    change: ValueChange
    before: str | None = None
    after: str | None = None


class ValueComparison(Shape):
    """A value in both runs; without `complete` it has further differences than are listed."""

    differs: bool
    differences: list[ValueDifference]
    complete: bool


class ComparedNode(Shape):
    """A node in one of the runs; times in milliseconds, the first since the run began."""

    status: NodeStatus
    branch: str | None = None
    attempt: int
    started_after: float | None = None
    duration: float | None = None
    error: str | None = None
    reused: bool


class NodeComparison(Shape):
    """A node in one scope, in both runs or in one; `differs` names what is not the same."""

    node_id: str
    scope_key: str
    node_kind: str
    label: str | None = None
    run: ComparedNode | None = None
    reference: ComparedNode | None = None
    differs: list[Aspect]
    input: ValueComparison
    output: ValueComparison


class NodePlace(Shape):
    """A node in one scope, and what is not the same there."""

    node_id: str
    scope_key: str
    differs: list[Aspect]


class RunComparison(Shape):
    """A run beside a reference, node by node in the order of the graph.

    `firstDivergence` is the first node that differs. `trimmed` says that there are more nodes than
    are listed; nodes that differ were listed before others.
    """

    run: ComparedRun
    reference: ComparedRun
    same_version: bool
    trigger_payload: ValueComparison
    output: ValueComparison
    first_divergence: NodePlace | None = None
    nodes: list[NodeComparison]
    trimmed: bool
