"""Runs and node runs on the wire (interface, Automation run; decisions C8, D3)."""

from typing import Annotated, Any

from pydantic import Field

from models.automation_runs.rules import NodeStatus, RunSource, RunStatus
from models.base import Id, Input, InputId, JsonObject, Moment, Shape


class RunNow(Input):
    """Body of run now."""

    trigger_payload: JsonObject | None = None


class TestRun(Input):
    """Body of test-run. Payload choice: explicit, then `testPayloadId`, then the first, then {}."""

    payload: JsonObject | None = None
    trigger_payload: JsonObject | None = None
    test_payload_id: str | None = None
    stop_at_node_id: str | None = None
    mocks: dict[str, JsonObject] = Field(default_factory=dict, max_length=200)
    simulate: bool = False
    automation_version_id: InputId | None = None


class RunScope(Input):
    """What the bindings of a run from a node read; `trigger` stands for the payload there (D3)."""

    trigger: Any = None
    item: Any = None
    index: Annotated[int, Field(ge=0)] | None = None
    variables: JsonObject = Field(default_factory=dict)


class RunFromNode(Input):
    """Body of run-from-node.

    `nodes` as an object pins outputs, as an array restricts execution to those ids; `scope` is
    the binding context of the run's own scope.
    """

    node_id: Annotated[str, Field(min_length=1, max_length=64)]
    automation_version_id: InputId | None = None
    scope: RunScope | str | None = None
    nodes: JsonObject | list[str] | None = None
    replay_of_run_id: InputId | None = None
    trigger_payload: JsonObject | None = None


class NodeRunShape(Shape):
    """One node in one scope; `attempt` counts the last attempt from 1."""

    id: Id
    run_id: Id
    node_id: str
    node_kind: str
    scope_key: str
    status: NodeStatus
    attempt: int
    input: JsonObject | None
    output: JsonObject | None
    error: str | None
    started_at: Moment | None
    completed_at: Moment | None
    metadata: JsonObject


class AutomationRunShape(Shape):
    """One run without its node runs, as lists show it."""

    id: Id
    automation_id: Id
    automation_version_id: Id
    workspace_id: Id
    status: RunStatus
    source: RunSource
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    trigger_payload: JsonObject
    output: JsonObject | None
    error: str | None
    start_node_id: str | None
    replay_of_run_id: Id | None
    metadata: JsonObject


class AutomationRunDetail(AutomationRunShape):
    """One run with its node runs, in the order they started."""

    node_runs: list[NodeRunShape]


class AutomationRunList(Shape):
    runs: list[AutomationRunShape]
    cursor: str | None
