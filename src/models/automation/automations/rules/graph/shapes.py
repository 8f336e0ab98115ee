"""The graph of an automation on the wire: nodes, edges, bindings, and the types of configs.

These models check shape: types, sizes, bounds, known keys. The compiler checks what a graph means
(kinds, targets, cycles, expressions), because a draft may be saved while that is still wrong.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field
from typing_extensions import TypeAliasType

from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind, OnError
from models.core.base import AbsentNotNull, Input, JsonObject, Label, example
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.http_requests import AsTexts, HeaderName, HeaderValue
from models.core.values import children

Value = TypeVar("Value")

MAX_DEPTH = 64


def bounded_depth(value: Value) -> Value:
    """Refuse nesting that is too deep for readers of a config."""
    level: Iterable[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in children(item)]
        if not level:
            return value
    raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")


class _Binding(Input):
    def to_json(self) -> JsonObject:
        """The binding as `bindings.resolve` reads it."""
        return self.model_dump()


class LiteralBinding(_Binding):
    """The literal value, even if it looks like a binding."""

    model_config = example({"type": "literal", "value": {"type": "node", "value": "just text"}})

    type: Literal["literal"]
    value: Annotated[Any, AfterValidator(bounded_depth)]


class TriggerBinding(_Binding):
    """A path into the payload of the trigger; null where the payload has nothing."""

    model_config = example({"type": "trigger", "value": "record.data.price"})

    type: Literal["trigger"]
    value: str


class NodeBinding(_Binding):
    """A path into the output of an earlier node; it begins with the id of the node."""

    model_config = example({"type": "node", "value": "fetch.body.items[0].name"})

    type: Literal["node"]
    value: str


class ItemBinding(_Binding):
    """A path into the item of the loop around the node; `$index` counts from 0."""

    model_config = example({"type": "item", "value": "data.email"})

    type: Literal["item"]
    value: str


class RunBinding(_Binding):
    """A fact of the run: `id`, `startedAt`, `source`, `workspaceId` or `resumeUrl`."""

    model_config = example({"type": "run", "value": "id"})

    type: Literal["run"]
    value: str


class VariableBinding(_Binding):
    """A path into a variable of the graph; it begins with the key of the variable."""

    model_config = example({"type": "variable", "value": "limits.daily"})

    type: Literal["variable"]
    value: str


class SecretBinding(_Binding):
    """A secret of the workspace by its name, for nodes that send it elsewhere.

    Only the kinds http_request, send_email and send_webhook take it. It is never logged and never
    shown in inputs, outputs or errors.
    """

    model_config = example({"type": "secret", "value": "shop_api_token"})

    type: Literal["secret"]
    value: str


class TemplateBinding(_Binding):
    """Text in which every `{{ … }}` is a CEL expression."""

    model_config = example({"type": "template", "value": "Hello {{ trigger.name }}!"})

    type: Literal["template"]
    value: str


class ExpressionBinding(_Binding):
    """The result of a CEL expression."""

    model_config = example({"type": "expression", "value": "double(trigger.price) * 1.19"})

    type: Literal["expression"]
    value: str


Binding = TypeAliasType(
    "Binding",
    Annotated[
        LiteralBinding
        | TriggerBinding
        | NodeBinding
        | ItemBinding
        | RunBinding
        | VariableBinding
        | SecretBinding
        | TemplateBinding
        | ExpressionBinding,
        Field(
            discriminator="type",
            description="The source of a value. Usable in place of any value in a config.",
        ),
    ],
)

MAX_WAIT_SECONDS = 30 * 86_400
"""A wait cannot outlast its run (interface.md#limits)."""


def one_or_many(value: object) -> object:
    """One text or number as the list it stands for."""
    return [value] if isinstance(value, str | int) and not isinstance(value, bool) else value


def _iso_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is not an ISO 8601 timestamp such as 2026-01-31T09:00:00Z") from None
    return text


_OF_THE_HOST = frozenset(
    {"alt-svc", "clear-site-data", "nel", "report-to", "service-worker-allowed"}
    | {"link", "refresh", "strict-transport-security", "www-authenticate"}
)
"""By these an answer speaks for every page of the host that gives it, not for itself: two of them
would report the other pages of a visitor to an author, and one would ask visitors for their
password."""

_OF_PROXIES = re.compile(r"x-(accel|lighttpd|litespeed|reproxy|sendfile|send-file)\b.*")
"""By these an answer has a proxy before the platform send a file of its own, or ask elsewhere."""

_NOT_TO_SET = _OF_THE_HOST | frozenset(
    {"connection", "content-encoding", "content-length", "date", "keep-alive", "server"}
    | {"proxy-authenticate", "proxy-connection", "set-cookie", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "x-request-id"}
)


def _may_be_set(name: str) -> str:
    if name.lower() in _NOT_TO_SET or _OF_PROXIES.fullmatch(name.lower()):
        raise ValueError("is a header that no answer may set")
    return name


def _can_be_sent(value: str) -> str:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("has characters that no header can carry") from None
    return value


IsoMoment = Annotated[str, Field(max_length=64), AfterValidator(_iso_moment)]
CelExpression = TypeAliasType(
    "CelExpression",
    Annotated[
        str,
        Field(
            min_length=1,
            max_length=4_000,
            description=(
                "An expression in CEL, the Common Expression Language, over `trigger`, `nodes`,"
                " `item`, `index`, `run` and `vars`. Functions: "
                + ", ".join(f"`{function.call}`" for function in FUNCTIONS)
                + "."
            ),
            examples=["trigger.record.data.price > 100.0"],
        ),
    ],
)
FieldKey = Annotated[str, Field(min_length=1, max_length=63)]
AnswerHeaders = Annotated[
    dict[
        Annotated[HeaderName, AfterValidator(_may_be_set)],
        Annotated[HeaderValue, AfterValidator(_can_be_sent)],
    ],
    Field(max_length=100),
    AsTexts,
]
"""Headers an automation may answer with: none of the connection's or the host's, no cookies."""
Status = Annotated[int, Field(ge=100, le=599)]
StatusClass = Annotated[str, Field(pattern=r"^[1-5]xx$")]

MAX_NODES = 200
MAX_EDGES = 500
MAX_TEST_PAYLOADS = 20
MAX_TEST_PAYLOAD_BYTES = 64 * 1024
MAX_SECONDS = 86_400
MAX_NOTES = 100
MAX_NOTE_LENGTH = 4_000
MIN_NOTE_SIZE = 60
MAX_NOTE_SIZE = 2_000


def _payload_size(value: JsonObject) -> JsonObject:
    if len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) > (
        MAX_TEST_PAYLOAD_BYTES
    ):
        raise ValueError(f"is larger than {MAX_TEST_PAYLOAD_BYTES // 1024} KiB")
    return value


NodeId = Annotated[str, Field(pattern=r"^[^/:\x00-\x1f\x7f]{1,64}$")]
"""Scope keys are made of node ids with `/` and `:` between them (interface.md#scopes-of-loops)."""

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

    Any value in `config`, at any depth, may be a binding. `input` overlays the top-level keys of
    `config`; for the kind action it is the input of the action.
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
        """Config overlaid with input, bindings unresolved (interface.md#bindings)."""
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


class CanvasNote(Input):
    """A text on the canvas. It changes nothing of what a run does."""

    model_config = example(
        {
            "id": "why",
            "text": "Refunds above 100 need the owner.",
            "position": {"x": 320, "y": -160},
            "width": 240,
            "height": 120,
            "color": "yellow",
        }
    )

    id: NodeId
    text: Annotated[str, Field(max_length=MAX_NOTE_LENGTH)] = ""
    position: Position
    width: Annotated[int, Field(ge=MIN_NOTE_SIZE, le=MAX_NOTE_SIZE)] = 240
    height: Annotated[int, Field(ge=MIN_NOTE_SIZE, le=MAX_NOTE_SIZE)] = 120
    color: Literal["yellow", "blue", "green", "red", "gray"] = "yellow"


class Graph(Input, AbsentNotNull):
    """The nodes and edges of an automation.

    They are validated when the automation is published; problems are in `referenceIssues`.
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
    notes: Annotated[list[CanvasNote], Field(max_length=MAX_NOTES)] | None = None
    """Texts on the canvas. They are not executed."""
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
