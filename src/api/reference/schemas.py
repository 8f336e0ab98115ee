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


def references(node: Any) -> Iterator[str]:
    """The names of the components that a schema refers to itself."""
    if isinstance(node, list):
        for one in node:
            yield from references(one)
    elif isinstance(node, dict):
        for key, one in node.items():
            if key == "$ref":
                yield one.removeprefix(PREFIX)
            elif key == REFERENCE:
                yield one
            elif key not in {"examples", "default"}:
                yield from references(one)


def reached(schemas: Mapping[str, Schema], roots: Iterator[str]) -> set[str]:
    """The names of these components and of all that they consist of."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found and name in schemas:
            found.add(name)
            waiting += references(schemas[name])
    return found


def resolved(node: Any, schemas: Mapping[str, Schema]) -> Any:
    """The document with `documented_as` as references, and without titles of single keys.

    Raises KeyError for a component that is not there.
    """
    if isinstance(node, list):
        return [resolved(one, schemas) for one in node]
    if not isinstance(node, dict):
        return node
    if REFERENCE in node:
        name = node[REFERENCE]
        if name not in schemas:
            raise KeyError(f"The document has no component {name}.")
        rest = {key: one for key, one in node.items() if key not in {REFERENCE, "title"}}
        return {**ref(name), **rest}
    return {
        key: one
        if key in {"examples", "default", "example"}
        else {name: resolved(untitled(part), schemas) for name, part in one.items()}
        if key == "properties"
        else resolved(one, schemas)
        for key, one in node.items()
        if (key, one) != ("default", None)
    }


def untitled(schema: Schema) -> Schema:
    """The schema without its own title."""
    return {key: one for key, one in schema.items() if key != "title"}
