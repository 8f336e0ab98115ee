"""The output of each node kind, and warnings about keys read of it that it never has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.automation.automations.rules.graph.shapes import Graph, GraphNode
from models.automation.automations.rules.graph.structure import Problem
from models.automation.automations.rules.language import static_reads
from models.core.base import JsonObject
from models.core.problems import nearest_known

_TEXT = {"type": "string"}
_COUNT = {"type": "integer"}
_OBJECT = {"type": "object"}
_LIST = {"type": "array", "items": {}}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_FLAG = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Output:
    """The keys of an output, each with the JSON Schema of its value.

    With `open` there are others, which depend on more than the kind. `parameter` is the one
    whose keys are the keys of the output.
    """

    says: str = ""
    keys: Mapping[str, JsonObject] = field(default_factory=dict)
    open: bool = False
    parameter: str | None = None


def _key(schema: JsonObject, says: str) -> JsonObject:
    return {**schema, "description": says}


_RECORD = _key(_OBJECT, "The record: `id`, `title`, `data`, `relations`, …")
_COUNTS = {
    "count": _key(_COUNT, "How many iterations there were."),
    "succeeded": _key(_COUNT, "Those without a failure."),
    "failed": _key(_COUNT, "Those with one."),
    "errors": _key(_LIST, "`{index, nodeId, error}` of the first failed ones, if there are any."),
    "results": _key(_LIST, "With `collect`: one output for each iteration, in order."),
}

_ANSWERED = ("headers", "body", "bodyEncoding")

OUTPUTS: Mapping[NodeKind, Output] = {
    NodeKind.ACTION: Output("The result of the action, as its kind gives it.", open=True),
    NodeKind.HTTP_REQUEST: Output(
        keys={
            "status": _key(_COUNT, "The status of the answer."),
            "headers": _key(_OBJECT, "Its headers, with names in lower case."),
            "body": _key({}, "Its JSON, else its text, else its bytes in Base64."),
            "bodyEncoding": _key(_TEXT, "`json`, `text` or `base64`; null without a body."),
            "file": _key(_OBJECT, "With `saveAs`: `{fileId, name, mimeType, byteSize}`."),
        }
    ),
    NodeKind.QUERY_RECORDS: Output(
        keys={
            "records": _key(_LIST, "The records of the page."),
            "cursor": _key(_TEXT, "Where the next page begins; null at the end."),
            "count": _key(_COUNT, "How many records the page has."),
            "groups": _key(_LIST, "With `groupBy`."),
            "aggregates": _key(_OBJECT, "With `aggregates`."),
        }
    ),
    NodeKind.CREATE_RECORD: Output(
        keys={
            "record": _RECORD,
            "created": _key(_FLAG, "False where `upsertBy` found a record."),
        }
    ),
    NodeKind.UPDATE_RECORD: Output(keys={"record": _RECORD}),
    NodeKind.DELETE_RECORD: Output(keys={"record": _RECORD}),
    NodeKind.TRANSFORM: Output("The map `output`, its bindings resolved.", parameter="output"),
    NodeKind.CONDITION: Output(keys={"result": _key(_FLAG, "What the condition gave.")}),
    NodeKind.SWITCH: Output(keys={"case": _key(_TEXT, "The key of the case; null for none.")}),
    NodeKind.FOR_EACH: Output(keys=_COUNTS),
    NodeKind.REPEAT: Output(
        keys={**_COUNTS, "limitReached": _key(_FLAG, "Whether `maxIterations` ended it.")}
    ),
    NodeKind.JOIN: Output("An empty object."),
    NodeKind.DELAY: Output("An empty object."),
    NodeKind.WAIT_EVENT: Output(
        keys={
            "data": _key(_OBJECT, "What came with the event; null after a timeout."),
            "resumedBy": _key(_TEXT, "Who resumed it; absent for a resume URL."),
        }
    ),
    NodeKind.APPROVAL: Output(
        keys={
            "decision": _key(_TEXT, "`approved`, `rejected` or `timeout`."),
            "comment": _key(_TEXT, "That of the last decision."),
            "data": _key(_OBJECT, "The answers to the form, by key."),
            "decisions": _key(_LIST, "`{userId, decision, comment, at}` of each, oldest first."),
        }
    ),
    NodeKind.CALL_AUTOMATION: Output(
        keys={
            "runId": _key(_TEXT, "The run of the other automation; null where it was skipped."),
            "status": _key(_TEXT, "How far it has come."),
            "output": _key(_OBJECT, "With `wait`: its output."),
        }
    ),
    NodeKind.NOTIFY: Output(keys={"notified": _key(_TEXTS, "The ids of the members.")}),
    NodeKind.SEND_EMAIL: Output(
        keys={
            "messageId": _key(_TEXT, "The `Message-ID` of the mail."),
            "accepted": _key(_TEXTS, "The addresses that the mail server accepted."),
            "refused": _key(_LIST, "`{address, status}` of the others."),
        }
    ),
    NodeKind.SEND_WEBHOOK: Output(
        keys={
            "webhookId": _key(_TEXT, "The `webhook-id` of the event."),
            "status": _key(_COUNT, "The status of the answer."),
            **{key: _key({}, "After a failure: as of `http_request`.") for key in _ANSWERED},
        }
    ),
    NodeKind.RESPOND: Output(
        keys={
            "status": _key(_COUNT, "As answered."),
            "headers": _key(_OBJECT, "As answered."),
            "body": _key({}, "As answered."),
        }
    ),
    NodeKind.STOP: Output(
        "The map `output`, and beside its keys `result` and `message`.",
        keys={
            "result": _key(_TEXT, "`succeeded` or `failed`."),
            "message": _key(_TEXT, "If there is one."),
        },
        parameter="output",
    ),
}

AFTER_FAILURE = ("error", "errorCode")
"""The keys of a node that failed, beside the keys of its output, if it has one."""
SIMULATED = "simulated"
"""The output of a node with side effects in a simulated test run: true under this key."""


def readable_keys(kind: NodeKind, parameters: JsonObject) -> frozenset[str] | None:
    """The keys that the output of a node can have; None when more than its config decides."""
    output = OUTPUTS[kind]
    if output.open:
        return None
    if output.parameter is None:
        return frozenset(output.keys)
    content = parameters.get(output.parameter, {})
    if not isinstance(content, dict) or content.keys() == {"type", "value"}:
        return None
    return frozenset({*output.keys, *content})


def output_key_warnings(graph: Graph) -> Iterator[Problem]:
    """The reads of keys that no output of the other node has, each with those there are.

    The warnings refuse nothing: a binding of such a key gives null, and a graph may have lived with
    that.
    """
    keys = {node.id: _keys(node) for node in graph.nodes}
    for node in graph.nodes:
        for other, key in sorted(set(_reads(node))):
            there = keys.get(other)
            if there is None or key in {*there, *AFTER_FAILURE, SIMULATED}:
                continue
            has = nearest_known(key, there) if there else "it is empty"
            what = f'"{shorten(key)}" of the output of the node "{shorten(other)}"'
            yield node.id, f"Reads {what}, which does not exist; {has}."


def _keys(node: GraphNode) -> list[str] | None:
    """The keys of a node's output in a fixed order; None when they cannot be known."""
    keys = readable_keys(node.kind, node.parameters())
    mocked = (node.mock.output or {}) if node.mock is not None else {}
    return None if keys is None else sorted({*keys, *mocked})


def _reads(node: GraphNode) -> Iterator[tuple[str, str]]:
    """The nodes and keys of their outputs that a node reads without asking whether they are."""
    paths = [*static_reads.paths_of(node), *static_reads.filter_paths_of(node)]
    for text in static_reads.expressions_of(node):
        paths += (("nodes", *path) for path in static_reads.plain_reads(text, "nodes"))
    for path in paths:
        match path:
            case "nodes", other, key, *_:
                yield other, key
