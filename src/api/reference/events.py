"""Events in the OpenAPI document: the log of a workspace, and the calls that webhooks make."""

from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_pascal

from api.reference.schemas import PREFIX, Schema, ref
from models.core.openapi import ID, MOMENT, TEXT, object_of
from models.messages.webhook_endpoints.rules import TEST
from models.messages.workspace_events.log import SHAPES, data_of
from models.messages.workspace_events.rules import EventType

CUSTOM = "send_webhook"
"""The kind of nodes and actions that send events of their own."""

_FURTHER = "More types may be added. Ignore unknown types."
_SEQ: Schema = {"type": "integer", "description": "The order of events; webhooks can arrive late."}

_SIGNATURE = (
    "Signatures `v1,<base64>`, separated by spaces: HMAC-SHA256 over"
    " `{webhook-id}.{webhook-timestamp}.{body}` with the endpoint secret (Standard Webhooks)."
    " After a rotation, both secrets sign."
)
_HEADERS = {
    "WebhookId": (
        "webhook-id",
        {"type": "string"},
        "The id of the event, the same for every attempt. Use it to detect duplicates.",
    ),
    "WebhookTimestamp": (
        "webhook-timestamp",
        {"type": "integer"},
        "When the attempt was signed, as a Unix timestamp.",
    ),
    "WebhookSignature": (
        "webhook-signature",
        {"type": "string"},
        _SIGNATURE,
    ),
}

_ANSWERS = {
    "WebhookTaken": "Any 2xx within 15 seconds: the event is delivered. The body is ignored.",
    "WebhookUnwanted": "The endpoint is disabled at once.",
    "WebhookRefused": (
        "Any other status, a redirect or no response: the event is retried for up to three days."
    ),
}
_BY_STATUS = {"2XX": "WebhookTaken", "410": "WebhookUnwanted", "default": "WebhookRefused"}


def describe_events(document: dict[str, Any]) -> None:
    """Add a schema for each type of event, and a webhook."""
    components = document["components"]
    schemas: dict[str, Schema] = components["schemas"]
    parts = {name: {"title": name, **shape} for name, shape in SHAPES.items()}
    schemas |= parts | _logged() | {"WebhookPayload": _PAYLOAD}
    schemas["WorkspaceEventBody"] = _union(schemas["WorkspaceEventBody"])
    components["parameters"] = {
        component: {
            "name": name,
            "in": "header",
            "required": True,
            "schema": schema,
            "description": says,
        }
        for component, (name, schema, says) in _HEADERS.items()
    }
    components["responses"] |= {name: {"description": says} for name, says in _ANSWERS.items()}
    document["webhooks"] = _webhooks()


def _logged() -> dict[str, Schema]:
    """The events as the log shows them."""
    envelope = {"seq": _SEQ, "at": MOMENT}
    return {
        _name(kind): {"title": _name(kind), **_event(kind, "seq type at actor data", envelope)}
        for kind in EventType
    }


def _called() -> dict[str, tuple[str, Schema]]:
    """The summary and the body of each webhook, as endpoints get them."""
    envelope = {"timestamp": MOMENT, "workspaceId": ID, "seq": _SEQ}
    always = "type timestamp workspaceId seq actor data"
    test = {**_OWN["properties"], "type": _const(TEST), "data": ref("EmptyEventData")}
    calls = {
        kind.value: (f"Events {kind.value}", _event(kind, always, envelope)) for kind in EventType
    }
    return {
        **calls,
        TEST: ("Test of an endpoint", {**_OWN, "properties": test}),
        CUSTOM: (
            "Events sent by nodes and actions",
            {
                **_OWN,
                "description": "The payload in the config of the node or action.",
                "properties": {**_OWN["properties"], "data": _FREE},
            },
        ),
    }


_OWN: Schema = object_of(
    "type timestamp data", type=TEXT, timestamp=MOMENT, data={"type": "object"}
)
_FREE: Schema = {"type": "object", "additionalProperties": True}

_PAYLOAD: Schema = {
    **_OWN,
    "title": "WebhookPayload",
    "description": "The body of a delivery, as described by the webhook of its `type`.",
    "required": ["type", "timestamp"],
    "properties": {
        **_OWN["properties"],
        "workspaceId": ID,
        "seq": _SEQ,
        "actor": ref("EventActor"),
        "data": _FREE,
    },
}


def _event(kind: EventType, always: str, envelope: Mapping[str, Schema]) -> Schema:
    properties = {
        **envelope,
        "type": _const(kind.value),
        "actor": ref("EventActor"),
        "data": data_of(kind),
    }
    return object_of(always, **{key: properties[key] for key in always.split()})


def _union(body: Schema) -> Schema:
    """Any event of the log, by its type."""
    return {
        "title": body["title"],
        "description": f"{body['description']} {_FURTHER}",
        "oneOf": [ref(_name(kind)) for kind in EventType],
        "discriminator": {
            "propertyName": "type",
            "mapping": {kind.value: PREFIX + _name(kind) for kind in EventType},
        },
    }


def _webhooks() -> dict[str, Any]:
    return {
        name: {
            "post": {
                "summary": summary,
                "tags": ["webhooks"],
                "parameters": [
                    {"$ref": f"#/components/parameters/{header}"} for header in _HEADERS
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": body}},
                },
                "responses": {
                    status: {"$ref": f"#/components/responses/{answer}"}
                    for status, answer in _BY_STATUS.items()
                },
            }
        }
        for name, (summary, body) in _called().items()
    }


def _name(kind: EventType) -> str:
    return f"{to_pascal(kind.value.replace('.', '_'))}Event"


def _const(value: str) -> Schema:
    return {"type": "string", "const": value}
