"""A run as its page shows it."""

from enum import StrEnum

from pydantic import Field

from models.automation.automation_runs.rules import NodeStatus, RunStatus
from models.automation.automation_runs.shapes import AutomationRunShape
from models.core.base import Id, JsonObject, Moment, Shape


class Point(Shape):
    x: float
    y: float


class GraphNodeShape(Shape):
    """One node of the graph; `position` is where its author put it."""

    id: str
    kind: str
    label: str | None = None
    disabled: bool = False
    position: Point | None = None


class GraphEdgeShape(Shape):
    id: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    outcome: str
    case_key: str | None = None


class RunGraph(Shape):
    """The graph the run executes, frozen with its version; what nodes are given is not in it."""

    nodes: list[GraphNodeShape]
    edges: list[GraphEdgeShape]


class Iterations(Shape):
    """The progress of a loop; `total` is absent while nobody knows how often it will run."""

    done: int
    total: int | None


class NodeProgress(Shape):
    """A node over all its scopes: how many are in each status, and the status that tells most."""

    node_id: str
    status: NodeStatus
    counts: dict[NodeStatus, int]
    attempt: int
    started_at: Moment | None
    completed_at: Moment | None
    iterations: Iterations | None = None


class RunRelation(StrEnum):
    """The relation of another run to this one."""

    PARENT = "parent"
    CHILD = "child"
    REPLAYED = "replayed"
    FAILURE = "failure"
    """It was started because this one failed."""


class RunLink(Shape):
    """Another run, of an automation that the caller sees."""

    relation: RunRelation
    run_id: Id
    automation_label: str
    status: RunStatus


class AutomationName(Shape):
    id: Id
    label: str


class RunOverview(Shape):
    """A run with the graph it executes and how far each node has come; others are not there."""

    run: AutomationRunShape
    automation: AutomationName
    version: int
    graph: RunGraph
    nodes: list[NodeProgress]
    links: list[RunLink]


class RunState(Shape):
    """The changing part of a run that is watched; `metadata` adds to that of the run."""

    status: RunStatus
    started_at: Moment | None
    completed_at: Moment | None
    error: str | None
    waiting: list[JsonObject]
    metadata: JsonObject


class RunChange(Shape):
    """The data of one `state` event: the run, and the nodes that changed since the last one."""

    run: RunState
    nodes: list[NodeProgress]
