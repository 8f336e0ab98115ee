"""Automations to begin with."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from models.core.base import JsonObject


class ExampleName(StrEnum):
    HELLO = "hello"
    APPROVAL = "approval"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class Example:
    """An automation that does something as it stands."""

    title: str
    sentence: str
    trigger_config: JsonObject
    graph: JsonObject


def _node(node_id: str, kind: str, label: str, **config: object) -> JsonObject:
    return {"id": node_id, "kind": kind, "label": label, "config": config}


_GREETING = {"type": "template", "value": "Hello {{ trigger.name }}!"}
_HELLO = Example(
    title="Hello",
    sentence="A person starts it with a name, and its output greets them.",
    trigger_config={"kind": "manual"},
    graph={
        "nodes": [_node("greet", "transform", "Greet", output={"text": _GREETING})],
        "edges": [],
        "testPayloads": [{"id": "ada", "name": "Ada", "payload": {"name": "Ada"}}],
    },
)
_APPROVAL = Example(
    title="Approval",
    sentence="It asks the owner, waits for the answer, and goes on by what it was.",
    trigger_config={"kind": "manual"},
    graph={
        "nodes": [
            _node("ask", "approval", "Ask the owner", role="owner", allowSelf=True, title="Go on?"),
            _node("approved", "transform", "Go on", output={"approved": True}),
            _node("rejected", "transform", "Leave it", output={"approved": False}),
        ],
        "edges": [
            {"from": "ask", "to": "approved", "outcome": "approved"},
            {"from": "ask", "to": "rejected", "outcome": "rejected"},
        ],
    },
)
_WEBHOOK = Example(
    title="Webhook with an answer",
    sentence="A signed HTTP call starts it, and is answered with what it sent.",
    trigger_config={"kind": "webhook", "respond": "wait"},
    graph={
        "nodes": [
            _node(
                "answer",
                "respond",
                "Answer the call",
                status=200,
                body={"received": {"type": "trigger", "value": "body"}},
            )
        ],
        "edges": [],
        "testPayloads": [
            {"id": "call", "name": "A call", "payload": {"method": "POST", "body": {"order": 1}}}
        ],
    },
)
EXAMPLES: Mapping[ExampleName, Example] = {
    ExampleName.HELLO: _HELLO,
    ExampleName.APPROVAL: _APPROVAL,
    ExampleName.WEBHOOK: _WEBHOOK,
}
