"""The type of a value in words and links, from its JSON Schema."""

from collections.abc import Iterator, Mapping
from html import escape

from api.reference.schemas import PREFIX, Schema

_LINKS = {
    "Filter": ("filter", "/docs/filters"),
    "BoundFilter": ("filter", "/docs/filters"),
    "CelExpression": ("CEL expression", "/docs/expressions"),
}
_LEFT_OUT = frozenset({"Binding", "PartialConfig"})
"""A binding may stand anywhere; the section says so once."""
_TEXTS = {"uuid": "id", "date-time": "moment (ISO 8601)", "date": "day (ISO 8601)"}
"""The formats of strings that have a name; any other string is text."""
_NAMES = {
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
}


def type_of(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """The type of the value, as HTML."""
    return " or ".join(dict.fromkeys(_alternatives(schema, schemas))) or "any value"


def _alternatives(schema: Schema, schemas: Mapping[str, Schema]) -> Iterator[str]:
    for key in ("anyOf", "oneOf"):
        for one in schema.get(key, ()):
            yield from _alternatives(one, schemas)
    if "$ref" in schema:
        yield from _component(schema["$ref"].removeprefix(PREFIX), schemas)
    elif "const" in schema:
        yield _code(schema["const"])
    elif "enum" in schema:
        yield ", ".join(_code(value) for value in schema["enum"])
    elif "type" in schema:
        yield _plain(schema, schemas)


def _component(name: str, schemas: Mapping[str, Schema]) -> Iterator[str]:
    if name in _LEFT_OUT:
        return
    if name in _LINKS:
        text, target = _LINKS[name]
        yield f'<a href="{target}">{text}</a>'
    elif "properties" in schemas[name]:
        yield f'<a href="#{name}">{name}</a>'
    else:
        yield from _alternatives(schemas[name], schemas)


def _plain(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    kind = schema["type"]
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}), schemas)}{_bounds(schema, 'Items')}"
    if kind == "object":
        patterns = list(schema.get("patternProperties", {}).values())
        values = patterns[0] if patterns else schema.get("additionalProperties")
        return f"map to {type_of(values, schemas)}" if isinstance(values, dict) else "object"
    if kind == "string":
        named = _TEXTS.get(schema.get("format", ""), schema.get("contentEncoding", "text"))
        return f"{named}{_bounds(schema, 'Length', ' characters')}"
    return f"{_NAMES.get(kind, kind)}{_range(schema)}"


def _bounds(schema: Schema, of: str, unit: str = "") -> str:
    most = schema.get(f"max{of}")
    return f", at most {most:,}{unit}" if most is not None else ""


def _range(schema: Schema) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low:,.15g} to {high:,.15g}"
    if low is not None:
        return f" from {low:,.15g}"
    return f" up to {high:,.15g}" if high is not None else ""


def _code(value: object) -> str:
    return f"<code>{escape(str(value).lower() if isinstance(value, bool) else str(value))}</code>"
