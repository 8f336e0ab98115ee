"""JSON Schemas of the document: references, one shape for each kind, bindings, answers."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.alias_generators import to_pascal
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from typing_extensions import override

from models.core.openapi import REFERENCE

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

    Raises KeyError for a missing component.
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


@dataclass(frozen=True, slots=True)
class ByKind:
    """`part` of a body is one of these components, by the kind beside it.

    `name` makes the name of the shape of a kind. With `partial`, a config may also be unfinished.
    `by` is the key of the kind. A kind without a config has no such part. `elsewhere` has the part
    of the kinds whose config has another key. With `needed`, a part cannot be left out when its
    config has keys that are required.
    """

    body: str
    part: str
    configs: Mapping[str, str | None]
    name: Callable[[str], str]
    partial: bool = False
    by: str = "kind"
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False

    def shapes(self, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
        """The shapes, and the body as their union."""
        body = schemas[self.body]
        groups: dict[str | None, list[str]] = {}
        for kind, config in self.configs.items():
            groups.setdefault(config, []).append(kind)
        names = {config: self.name(_spelled(config, kinds)) for config, kinds in groups.items()}
        shapes = {
            names[config]: self._shape(names[config], body, config, kinds, schemas)
            for config, kinds in groups.items()
        }
        clashes = shapes.keys() & schemas.keys()
        if clashes:
            raise RuntimeError(f"The document has these components already: {sorted(clashes)}.")
        mapping = {kind: PREFIX + names[config] for kind, config in self.configs.items()}
        union: Schema = {
            "title": body["title"],
            "oneOf": [ref(name) for name in shapes],
            "discriminator": {"propertyName": self.by, "mapping": mapping},
        }
        if "description" in body:
            union["description"] = body["description"]
        return {**shapes, self.body: union}

    def _shape(
        self,
        name: str,
        body: Schema,
        config: str | None,
        kinds: list[str],
        schemas: Mapping[str, Schema],
    ) -> Schema:
        kind: Schema = {"type": "string"}
        kind |= {"const": kinds[0]} if len(kinds) == 1 else {"enum": kinds}
        shape = {key: one for key, one in body.items() if key != "examples"}
        shape["title"] = name
        parts = {self.part, *self.elsewhere.values()}
        kept = {key: one for key, one in body["properties"].items() if key not in parts}
        shape["properties"] = {**kept, self.by: kind}
        if config is None:
            return shape
        part = self.elsewhere.get(kinds[0], self.part)
        if self.needed and schemas[config].keys() & {"required", "oneOf"}:
            shape["properties"][part] = ref(config)
            shape["required"] = [*shape["required"], part]
        else:
            shape["properties"][part] = self._config(config, body["properties"][part])
        described = schemas[config].get("description")
        if described is not None:
            shape["description"] = described
        return shape

    def _config(self, config: str, was: Schema) -> Schema:
        options = [ref(config)]
        if self.partial:
            options.append(ref("PartialConfig"))
        if {"type": "null"} in was.get("anyOf", []):
            options.append({"type": "null"})
        return options[0] if len(options) == 1 else {"anyOf": options}


def _spelled(config: str | None, kinds: list[str]) -> str:
    """The name of a shape: by its kind, or by the config that several kinds share."""
    if config is None or len(kinds) == 1:
        return to_pascal(kinds[0])
    return config.removesuffix("Settings").removesuffix("Config").removesuffix("Content")


FILTER_KEYS = frozenset({"field", "op", "timezone", "and", "or", "not"})
"""Keys of a filter that say what it is. Only the value of a test may be a binding."""

_ANY_OBJECT = {"type": "object", "additionalProperties": True}
_ANNOTATIONS = ("description", "default", "examples")


class WithBindings:
    """Rewrites schemas so that a binding is allowed for every value, at any depth.

    A part in `shared` is described without bindings, too, so its copy is named `Bound…`. `fixed`
    are the keys of a component whose value decides something before a run begins.
    """

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        shared: Collection[str],
        fixed: Mapping[str, Collection[str]],
    ) -> None:
        self._schemas = schemas
        self._shared = shared
        self._fixed = fixed
        self.made: dict[str, Schema] = {}
        self._unbound: set[str] = set()
        """The components that take a binding as they are."""

    def component(self, name: str) -> str:
        """The name of the component with bindings, which is made if it has to be."""
        schema = self._schemas[name]
        if name == "Binding" or not {"properties", "items", "anyOf", "oneOf"} & schema.keys():
            return name
        title = f"Bound{name}" if name in self._shared else name
        if title not in self.made and name not in self._unbound:
            self.made[title] = {}  # it may refer to itself
            inside = self._inside(schema, self._fixed.get(name, ()))
            if inside == schema:
                del self.made[title]
                self._unbound.add(name)
            else:
                self.made[title] = {**inside, "title": title}
        return name if name in self._unbound else title

    def _value(self, schema: Schema) -> Schema:
        """A value or a binding. What may be anything, or any object, may be a binding already."""
        inside = self._inside(schema)
        known = {key: one for key, one in inside.items() if key not in {*_ANNOTATIONS, "title"}}
        if known in ({}, _ANY_OBJECT):
            return inside
        options = known.pop("anyOf", None) or [known]
        outer = {key: inside[key] for key in _ANNOTATIONS if key in inside}
        return {"anyOf": [*options, ref("Binding")], **outer}

    def _inside(self, schema: Schema, fixed: Collection[str] = ()) -> Schema:
        copy = dict(schema)
        if "$ref" in copy:
            copy["$ref"] = PREFIX + self.component(copy["$ref"].removeprefix(PREFIX))
        for key in ("anyOf", "oneOf"):
            if key in copy:
                copy[key] = [self._inside(part) for part in copy[key]]
        if "discriminator" in copy:
            mapping = copy["discriminator"]["mapping"]
            targets = {
                value: PREFIX + self.component(target.removeprefix(PREFIX))
                for value, target in mapping.items()
            }
            copy["discriminator"] = {**copy["discriminator"], "mapping": targets}
        if "items" in copy:
            copy["items"] = self._value(copy["items"])
        if isinstance(copy.get("additionalProperties"), dict):
            copy["additionalProperties"] = self._value(copy["additionalProperties"])
        if "patternProperties" in copy:
            patterns = copy["patternProperties"].items()
            copy["patternProperties"] = {key: self._value(part) for key, part in patterns}
        if "properties" in copy:
            copy["properties"] = {
                key: self._fixed_part(part) if key in fixed else self._value(part)
                for key, part in copy["properties"].items()
            }
        return copy

    def _fixed_part(self, schema: Schema) -> Schema:
        """A part that is no binding itself; the tests of a filter in it may hold some."""
        copy = dict(schema)
        if "$ref" in copy:
            return self._inside(copy)
        for key in ("anyOf", "oneOf"):
            if key in copy:
                copy[key] = [self._fixed_part(part) for part in copy[key]]
        if "items" in copy:
            copy["items"] = self._fixed_part(copy["items"])
        return copy


_NULL: Schema = {"type": "null"}


def inline_pages(document: dict[str, Any]) -> None:
    """Describe the page of a list where it is answered: the items of one component and a cursor."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    pages = {name for name, schema in schemas.items() if _is_page(schema)}
    pages -= {name for schema in schemas.values() for name in references(schema)}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                body = response.get("content", {}).get("application/json", {}).get("schema", {})
                data = body.get("properties", {}).get("data", {})
                name = data.get("$ref", "").removeprefix(PREFIX)
                if status < "300" and name in pages:
                    body["properties"]["data"] = untitled(schemas[name])
    for name in pages:
        del schemas[name]


def _is_page(schema: Schema) -> bool:
    properties = schema.get("properties", {})
    arrays = [key for key, one in properties.items() if one.get("type") == "array"]
    return len(arrays) == 1 and properties.keys() == {*arrays, "cursor"}


def drop_nulls(document: dict[str, Any], as_sent: Collection[str] = ()) -> None:
    """Describe what bodies and answers share as answers have it: without null.

    A body may say null for a key without a value, an answer leaves the key out
    (interface.md#absent-and-null). A shape of both has one description, which says that the key
    may be left out, so that a client sends back what it read. Components that repeat what
    was `as_sent` are no answers in this.
    """
    schemas: dict[str, Schema] = document["components"]["schemas"]
    operations = [
        operation for methods in document["paths"].values() for operation in methods.values()
    ]
    answered = {name: schema for name, schema in schemas.items() if name not in as_sent}
    bodies = reached(schemas, _named(operations, "requestBody"))
    answers = reached(answered, _named(operations, "responses"))
    for name in bodies & answers:
        properties = schemas[name].get("properties", {})
        for key in [key for key, one in properties.items() if one.get("type") == "null"]:
            del properties[key]
        properties |= {key: _without_null(one) for key, one in properties.items()}


def _named(operations: list[Any], part: str) -> Iterator[str]:
    for operation in operations:
        yield from references(operation.get(part))


def _without_null(schema: Schema) -> Schema:
    if _NULL not in schema.get("anyOf", ()):
        return schema
    options = [one for one in schema["anyOf"] if one != _NULL]
    rest = {key: one for key, one in schema.items() if key != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}
