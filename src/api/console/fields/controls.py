"""Controls of a form, laid out from the shape of the JSON that it makes, and back.

The JSON Schema of a shape says what each key may be: its kind, bounds, choices and default. What it
cannot say comes from the page: the choices of a key that names something, and better words.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import BaseModel

from api.console.forms import read_json
from api.console.words import indented, plain
from models.core.base import JsonObject

Offers = Mapping[str, Sequence[tuple[str, str]]]
"""The choices of keys that name something, each as a value and its label."""
Words = Mapping[str, tuple[str, str]]
"""Label and hint of keys, where their names do not say it."""
Look = Literal["line", "number", "long", "tick", "choice", "json"]

_LONG = 1_000
"""Characters from which a text gets several lines."""
_MOST_DIGITS = 30
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """An input of a form: `name` is the place of its value in the body of the operation."""

    name: str
    key: str
    label: str
    hint: str
    look: Look
    choices: Sequence[tuple[str, str]]
    attributes: Mapping[str, object]
    """Attributes of HTML that hold the bounds of the value."""
    default: object
    """The value without an entry."""

    def text_of(self, settings: JsonObject) -> str:
        """The text that shows a stored value; empty without one."""
        value = settings.get(self.key, self.default)
        if self.look == "tick":
            return "on" if value is True else ""
        if self.look == "json":
            return indented(value) if value else ""
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        if isinstance(value, bool):
            return "Yes" if value else ""
        return "" if value is None else str(value)

    def value_of(self, text: str) -> object:
        """The value of a text, None for one that leaves the key out. Raises ValidationError.

        A text that is not a number stays one, which the shape refuses.
        """
        if self.look == "tick":
            on = bool(text)
            return None if on is (self.default is True) else on
        if not text:
            return None
        if self.look == "json":
            return read_json(self.name, text)
        return _number(text) if self.look == "number" else text


def laid_out(
    shape: type[BaseModel],
    path: str,
    *,
    words: Words,
    offers: Offers,
    without: Collection[str] = (),
) -> list[Control]:
    """The controls of a shape, in its order; their names are below `path`."""
    schema = _schema(shape)
    required = schema.get("required", ())
    return [
        _control(
            f"{path}.{key}",
            key,
            words.get(key) or (_label(key), ""),
            _resolved(described, schema),
            offers.get(key),
            is_required=key in required,
        )
        for key, described in schema["properties"].items()
        if key not in without
    ]


def texts_of(controls: Sequence[Control], settings: JsonObject) -> dict[str, str]:
    """The texts of a form that shows stored values."""
    texts = {one.name: one.text_of(settings) for one in controls}
    return {name: text for name, text in texts.items() if text}


def values_of(
    controls: Sequence[Control], texts: Mapping[str, str], before: JsonObject
) -> JsonObject:
    """The values `before`, changed by a form; a text that was emptied takes its key away.

    Whatever is shown and sent back unchanged stays exactly as it is. Raises ValidationError.
    """
    values = dict(before)
    for control in controls:
        text = texts.get(control.name, "")
        if control.key in before and text == control.text_of(before):
            continue
        values.pop(control.key, None)
        value = control.value_of(text)
        if value is not None:
            values[control.key] = value
    return values


@cache
def _schema(shape: type[BaseModel]) -> JsonObject:
    schema: JsonObject = shape.model_json_schema()
    return schema


def _resolved(described: JsonObject, schema: JsonObject) -> JsonObject:
    """The one schema of a value that may be null or of a type by name; text before others."""
    if "$ref" in described:
        named = schema["$defs"][described["$ref"].rpartition("/")[2]]
        return {**named, "default": described.get("default")}
    if "anyOf" not in described:
        return described
    kinds = [_resolved(one, schema) for one in described["anyOf"]]
    kinds = [one for one in kinds if one.get("type") != "null"]
    texts = [one for one in kinds if one.get("type") == "string"]
    return {**(texts or kinds)[0], "default": described.get("default")}


def _control(
    name: str,
    key: str,
    words: tuple[str, str],
    described: JsonObject,
    offered: Sequence[tuple[str, str]] | None,
    *,
    is_required: bool,
) -> Control:
    default = described.get("default")
    choices = offered
    if choices is None and "enum" in described:
        choices = [(str(one), sentence_case(plain(one))) for one in described["enum"]]
    if choices is not None and default is None:
        choices = [("", "Choose…" if is_required else "Default"), *choices]
    return Control(
        name=name,
        key=key,
        label=words[0],
        hint=words[1],
        look="choice" if choices is not None else _look(described),
        choices=choices or (),
        attributes=_attributes(described) | ({"required": ""} if is_required else {}),
        default=default,
    )


def _look(described: JsonObject) -> Look:
    match described.get("type"):
        case "boolean":
            return "tick"
        case "integer" | "number":
            return "number"
        case "string":
            return "long" if described.get("maxLength", 0) > _LONG else "line"
    return "json"


def _attributes(described: JsonObject) -> dict[str, object]:
    bounds = {"minimum": "min", "maximum": "max", "maxLength": "maxlength", "pattern": "pattern"}
    attributes = {name: described[bound] for bound, name in bounds.items() if bound in described}
    if described.get("type") == "number":
        attributes["step"] = "any"
    return attributes


def _label(key: str) -> str:
    """`roundToMinutes` → `Round to minutes`."""
    return sentence_case(_WORD.sub(" ", key).lower())


def sentence_case(words: str) -> str:
    """The words with a capital letter, and as they are else."""
    return words[:1].upper() + words[1:]


def _number(text: str) -> int | float | str:
    if len(text) > _MOST_DIGITS:
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
