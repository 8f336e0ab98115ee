"""The graph of an automation on the wire (interface, graph; decisions C3, C8).

These models check shape: types, sizes, bounds, known keys. What a graph means (kinds, targets,
cycles, expressions) is the compiler's, because a draft may be saved while that is still wrong.
"""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind, OnError
from models.automation.automations.rules.language.binding_shapes import Binding, bounded_depth
from models.core.absence import AbsentNotNull
from models.core.base import Input, JsonObject, Label

MAX_NODES = 200
MAX_EDGES = 500
MAX_TEST_PAYLOADS = 20
MAX_TEST_PAYLOAD_BYTES = 64 * 1024
MAX_SECONDS = 86_400


def _payload_size(value: JsonObject) -> JsonObject:
    if len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) > (
        MAX_TEST_PAYLOAD_BYTES
    ):
        raise ValueError(f"is larger than {MAX_TEST_PAYLOAD_BYTES // 1024} KiB")
    return value


NodeId = Annotated[str, Field(pattern=r"^[^/:\x00-\x1f\x7f]{1,64}$")]
"""Scope keys are made of node ids with `/` and `:` between them (decisions C8)."""

ItemId = Annotated[str, Field(min_length=1, max_length=64)]
Reference = Annotated[str, Field(max_length=64)]
"""An id of something else. The compiler reports one that refers to nothing."""

VariableKey = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
Json = Annotated[JsonObject, AfterValidator(bounded_depth)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Delay = Annotated[Number, Field(ge=0, le=MAX_SECONDS)]


class Position(Input):
    """The point at which an editor draws it."""

    x: Number
    y: Number


class Retry(Input):
    """A retry policy in seconds; a node without one is tried once."""

    max_attempts: Annotated[int, Field(ge=1, le=20)] = 3
    initial_delay_seconds: Delay = 2
    backoff_multiplier: Annotated[Number, Field(ge=1, le=100)] = 2
    max_delay_seconds: Delay = 300


class Mock(Input, AbsentNotNull):
    """The output that a test run gives instead of running the node."""

    enabled: bool = False
    output: Json | None = None


class GraphNode(Input, AbsentNotNull):
    """One node: what its kind needs to know is in `config`.

    In place of any value in `config`, at any depth, a binding may stand. `input` overlays the
    top-level keys of `config`; for the kind action it is the input of the action.
    """

    id: NodeId
    kind: Annotated[NodeKind, Field(strict=False)]
    label: Label | None = None
    config: Json = Field(default_factory=dict)
    input: Annotated[dict[str, Binding], Field(max_length=200, default_factory=dict)]
    action_id: Reference | None = None
    retry: Retry | None = None
    timeout_seconds: Annotated[int, Field(ge=1, le=MAX_SECONDS)] = 300
    disabled: bool = False
    mock: Mock | None = None
    notes: Annotated[str, Field(max_length=10_000)] | None = None
    position: Position | None = None

    def parameters(self) -> JsonObject:
        """Config overlaid with input, bindings unresolved (decisions C8)."""
        overlay = {name: binding.to_json() for name, binding in self.input.items()}
        return {**self.config, **overlay}


class GraphEdge(Input, AbsentNotNull):
    """A way on from a node that ends with an outcome; `always` whenever it completes."""

    id: ItemId | None = None
    source: Annotated[str, Field(alias="from", max_length=64)]
    target: Annotated[str, Field(alias="to", max_length=64)]
    outcome: Annotated[EdgeOutcome, Field(strict=False)] = EdgeOutcome.ALWAYS
    case_key: Annotated[str, Field(max_length=64)] | None = None


class TestPayload(Input):
    """A named trigger payload for test runs."""

    __test__ = False  # pytest takes the name for a test class

    id: ItemId
    name: Label
    payload: Annotated[Json, AfterValidator(_payload_size)] = Field(default_factory=dict)


class Graph(Input, AbsentNotNull):
    """The nodes and edges of an automation.

    Whether they mean something is checked when it is published, and told as `referenceIssues`.
    """

    nodes: Annotated[list[GraphNode], Field(max_length=MAX_NODES, default_factory=list)]
    edges: Annotated[list[GraphEdge], Field(max_length=MAX_EDGES, default_factory=list)]
    entry_node_ids: Annotated[list[Reference], Field(max_length=MAX_NODES, default_factory=list)]
    test_payloads: Annotated[
        list[TestPayload], Field(max_length=MAX_TEST_PAYLOADS, default_factory=list)
    ]
    failure_automation_id: Reference | None = None
    variables: Annotated[dict[VariableKey, Any], AfterValidator(bounded_depth)] = Field(
        default_factory=dict, max_length=100
    )
    """Values of `variable` bindings, by key; expressions read them as `vars`."""
    trigger_position: Position | None = None
    on_error: Annotated[OnError, Field(strict=False)] = OnError.STOP

    def to_json(self) -> JsonObject:
        """The graph as it is stored and answered: absent keys left out, every edge with an id."""
        document: JsonObject = self.model_dump(mode="json", by_alias=True)
        taken = {edge.get("id") for edge in document["edges"]}
        numbered = (f"edge-{number}" for number in range(1, 2 * MAX_EDGES))
        free = (name for name in numbered if name not in taken)
        for edge in document["edges"]:
            if "id" not in edge:
                edge["id"] = next(free)
        return document
