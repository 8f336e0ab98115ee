"""The inputs of operations of a change set: bodies of the API with the ids of their paths."""

from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_pascal

from api.reference.schemas import Schema, describe, reached, ref, references
from models.workspace.changes.notes import NOTES
from models.workspace.changes.rules.kinds import RULES, OperationKind
from models.workspace.changes.rules.references import NAMED

INPUTS = {kind.value: f"{to_pascal(kind.value)}Input" for kind in OperationKind}
"""The component of each kind's input."""

_REFERENCE: Schema = {
    "title": "Reference",
    "description": "In place of an id: what the operation with this `ref`, or a part of it, has.",
    "type": "object",
    "properties": {"ref": {"type": "string", "pattern": f"^{NAMED}$"}},
    "required": ["ref"],
    "additionalProperties": False,
}
_REFERRING: Schema = {
    "title": "Referring",
    "description": "The same, with a `Reference` in place of any id in it.",
    "type": "object",
    "additionalProperties": True,
}


def operation_inputs() -> dict[str, Schema]:
    """The inputs, and the parts that no body of an operation has."""
    models = {model.__name__: model for rule in RULES.values() for model in (rule.about, rule.body)}
    schemas = describe(models)
    inputs = {
        INPUTS[kind.value]: _joined(
            schemas[rule.about.__name__], schemas[rule.body.__name__], INPUTS[kind.value], kind
        )
        for kind, rule in RULES.items()
    }
    parts = {name: schema for name, schema in schemas.items() if name not in models}
    return {**parts, **inputs, "Reference": _REFERENCE, "Referring": _REFERRING}


def _joined(about: Schema, body: Schema, title: str, kind: OperationKind) -> Schema:
    note = NOTES[kind]
    # As in the bodies themselves: a key that is left out of a change stays as it is.
    left_out = {"title", "default"} if kind.value.startswith("update_") else {"title"}
    properties = {
        key: {name: one for name, one in schema.items() if name not in left_out}
        for key, schema in {**about.get("properties", {}), **body.get("properties", {})}.items()
    }
    return {
        **body,
        "title": title,
        "description": note.says,
        "properties": properties,
        "required": [*about.get("required", ()), *body.get("required", ())],
        "examples": [note.example],
    }


def allow_references(schemas: dict[str, Schema]) -> None:
    """Let a reference stand for each id in an input."""
    for name in INPUTS.values():
        properties = schemas[name]["properties"].items()
        schemas[name]["properties"] = {key: _referring(one, schemas) for key, one in properties}


def _referring(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    if "anyOf" in schema:
        options: list[Any] = []
        for option in schema["anyOf"]:
            found = _referring(option, schemas)
            options += [each for each in found.get("anyOf", [found]) if each not in options]
        return {**schema, "anyOf": options}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            return {**schema, key: _referring(schema[key], schemas)}
    if schema.get("format") == "uuid":
        return {"anyOf": [schema, ref("Reference")]}
    parts = [schemas[name] for name in reached(schemas, references(schema))]
    holds_ids = any(_holds_id(part) for part in parts)
    return {"anyOf": [schema, ref("Referring")]} if holds_ids else schema


def _holds_id(part: object) -> bool:
    if isinstance(part, list):
        return any(_holds_id(one) for one in part)
    if not isinstance(part, dict):
        return False
    named = any(key.endswith(("Id", "Ids")) for key in part.get("properties", ()))
    return named or part.get("format") == "uuid" or any(_holds_id(one) for one in part.values())
