"""JSON Schemas of the OpenAPI document by component name, and the references between them."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from typing_extensions import override

from models.core.documented import REFERENCE

Schema = dict[str, Any]
PREFIX = "#/components/schemas/"


def ref(name: str) -> Schema:
    """A reference to a component."""
    return {"$ref": PREFIX + name}


class _AsWritten(GenerateJsonSchema):
    @override
    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """Keep the order of keys, which examples are read in."""
        return value


def describe(types: Mapping[str, Any]) -> dict[str, Schema]:
    """The components that describe these types, and all that they consist of."""
    mode: Literal["validation"] = "validation"
    adapters = [(name, mode, TypeAdapter(one)) for name, one in types.items()]
    found, rest = TypeAdapter.json_schemas(
        adapters, ref_template=PREFIX + "{model}", schema_generator=_AsWritten
    )
    schemas: dict[str, Schema] = dict(rest.get("$defs", {}))
    for (name, _), schema in found.items():
        if schema != ref(str(name)):
            schemas[str(name)] = schema
    return {name: {**schema, "title": name} for name, schema in schemas.items()}


def references(node: object) -> Iterator[str]:
    """The names of the components that a schema refers to itself."""
    if isinstance(node, list):
        for part in node:
            yield from references(part)
    elif isinstance(node, dict):
        for key, part in node.items():
            if key == "$ref":
                yield part.removeprefix(PREFIX)
            elif key == REFERENCE:
                yield part
            elif key not in {"examples", "default"}:
                yield from references(part)


def reached(schemas: Mapping[str, Schema], roots: Iterator[str]) -> set[str]:
    """The names of these components and of all that they consist of."""
    names: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in names and name in schemas:
            names.add(name)
            waiting += references(schemas[name])
    return names


def resolved(node: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """The document with `documented_as` as references, and without titles of single keys.

    Raises KeyError for a component that is not there.
    """
    if REFERENCE in node:
        name = node[REFERENCE]
        if name not in schemas:
            raise KeyError(f"The document has no component {name}.")
        rest = {key: value for key, value in node.items() if key not in {REFERENCE, "title"}}
        return {**ref(name), **rest}
    return {
        key: value
        if key in {"examples", "default", "example"}
        else {name: resolved(untitled(part), schemas) for name, part in value.items()}
        if key == "properties"
        else _resolved_part(value, schemas)
        for key, value in node.items()
        if (key, value) != ("default", None)
    }


def _resolved_part(part: object, schemas: Mapping[str, Schema]) -> object:
    if isinstance(part, list):
        return [_resolved_part(one, schemas) for one in part]
    return resolved(part, schemas) if isinstance(part, dict) else part


def untitled(schema: Schema) -> Schema:
    """The schema without its own title."""
    return {key: one for key, one in schema.items() if key != "title"}
