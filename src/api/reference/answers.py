"""Shapes that stand in bodies and in answers: what an answer has no value for is absent, not null.

A body may say null, an answer does not (decisions C1). So what stands in both, and may be null in
the one, is described twice: `Graph` is what is sent, `GraphAnswer` what is answered.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from api.reference.schemas import PREFIX, Schema, reached, ref, references

_NULL: Schema = {"type": "null"}


def describe_answers(document: dict[str, Any], as_sent: Collection[str] = ()) -> None:
    """Give answers shapes of their own where bodies may have a null.

    Components that repeat what was `as_sent` have the shapes of bodies.
    """
    schemas: dict[str, Schema] = document["components"]["schemas"]
    operations = [
        operation for methods in document["paths"].values() for operation in methods.values()
    ]
    inputs = reached(schemas, _named(operations, "requestBody"))
    answered = {name: schema for name, schema in schemas.items() if name not in as_sent}
    outputs = reached(answered, _named(operations, "responses"))
    own = _with_nulls({name: schemas[name] for name in outputs & inputs})
    input_schemas = {name: schemas[name] for name in inputs - outputs}

    def renamed(name: str) -> str:
        return f"{name}Answer" if name in own else name

    for name in outputs - inputs:
        schemas[name] = _renamed(schemas[name], renamed)
    for name in own:
        schemas[renamed(name)] = _answer(schemas[name], renamed)
    for schema in input_schemas.values():
        _take_answers(schema, own)
    for operation in operations:
        operation["responses"] = _renamed(operation["responses"], renamed)


def _take_answers(schema: Schema, own: set[str]) -> None:
    """Let what is only sent have its parts as they were answered: they fit as they are."""
    if "properties" in schema:
        schema["properties"] = {
            key: _or_answer(part, own) for key, part in schema["properties"].items()
        }


def _or_answer(schema: Schema, own: set[str]) -> Schema:
    name = schema.get("$ref", "").removeprefix(PREFIX)
    if name in own:
        rest = {key: one for key, one in schema.items() if key != "$ref"}
        return {"anyOf": [ref(name), ref(f"{name}Answer")], **rest}
    if "anyOf" in schema:
        options = [_or_answer(one, own) for one in schema["anyOf"]]
        flat = [each for one in options for each in one.get("anyOf", [one])]
        return {**schema, "anyOf": flat}
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": _or_answer(schema["items"], own)}
    return schema


def _named(operations: list[Any], part: str) -> Iterator[str]:
    for operation in operations:
        yield from references(operation.get(part))


def _with_nulls(schemas: dict[str, Schema]) -> set[str]:
    """The schemas in which a key may be null, and all that consist of them."""
    names = {
        name
        for name, schema in schemas.items()
        if any(_may_be_null(one) for one in schema.get("properties", {}).values())
    }
    while more := {
        name
        for name, schema in schemas.items()
        if name not in names and not names.isdisjoint(references(schema))
    }:
        names |= more
    return names


def _may_be_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or _NULL in schema.get("anyOf", ())


def _answer(schema: Schema, renamed: Callable[[str], str]) -> Schema:
    whole = {key: part for key, part in schema.items() if key != "examples"}
    answer: Schema = _renamed(whole, renamed)
    if "title" in answer:
        answer["title"] = renamed(answer["title"])
    if "properties" in answer:
        answer["properties"] = {
            key: _without_null(part)
            for key, part in answer["properties"].items()
            if part.get("type") != "null"
        }
    return answer


def _without_null(schema: Schema) -> Schema:
    if not _may_be_null(schema):
        return schema
    options = [one for one in schema["anyOf"] if one != _NULL]
    rest = {key: one for key, one in schema.items() if key != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}


def _renamed(schema: Schema, renamed: Callable[[str], str]) -> Schema:
    """The same with references, and the targets of discriminators, to the renamed components."""
    return {key: _renamed_part(part, renamed) for key, part in schema.items()}


def _renamed_part(node: object, renamed: Callable[[str], str]) -> object:
    if isinstance(node, list):
        return [_renamed_part(one, renamed) for one in node]
    if isinstance(node, dict):
        return _renamed(node, renamed)
    if isinstance(node, str) and node.startswith(PREFIX):
        return PREFIX + renamed(node.removeprefix(PREFIX))
    return node
