"""Controls of a form, laid out from the shape of the JSON that it makes, and back.

The JSON Schema of a shape says what each key may be: its kind, bounds, choices and default. What it
cannot say comes from the page: the choices of a key that names something, and better words.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Literal

from pydantic import BaseModel

from api.console.forms import read_json
from api.console.words import compact, indented, plain, sentence_case
from models.automation.automation_runs.rules import RunStatus
from models.automation.run_statistics import Period, RunStatistics
from models.core.base import JsonObject
from runtime.errors import ValidationError
from runtime.strict_json import StrictJsonError, parse

Offers = Mapping[str, Sequence[tuple[str, str]]]
"""The choices of keys that name something, each as a value and its label."""
Words = Mapping[str, tuple[str, str]]
"""Label and hint of keys, where their names do not say it."""
Look = Literal[
    "line", "number", "long", "tick", "choice", "json", "lines", "moment", "value", "rows"
]

_LONG = 1_000
"""Characters from which a text gets several lines."""
_MOST_DIGITS = 30
MOST_ROWS = 100
_SPARE_ROWS = 2
_CELLS = frozenset({"line", "number", "long", "tick", "choice", "value"})
"""Looks that fit into a row."""
_NAMED = "name"
"""The column that has the key of a row, where the value is an object by keys."""
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
    columns: Sequence["Control"] = ()
    """The inputs of a row, of a value that is a list of objects, or an object of objects."""

    is_named: bool = False
    """The value of the rows is an object by the names in their first column."""

    def rows(self, texts: Mapping[str, str]) -> list[list["Control"]]:
        """The rows of a form with these texts: the filled ones, and some to fill."""
        start = f"{self.name}."
        rests = [name.removeprefix(start) for name in texts if name.startswith(start)]
        places = [rest.partition(".")[0] for rest in rests]
        filled = [int(place) for place in places if place.isdecimal() and len(place) < 4]
        count = min(MOST_ROWS, max([-1, *filled]) + 1 + _SPARE_ROWS)
        return [self.row(place) for place in range(count)]

    def row(self, place: int) -> list["Control"]:
        """The inputs of one row."""
        return [replace(one, name=f"{self.name}.{place}.{one.key}") for one in self.columns]

    def stored_rows(self, settings: JsonObject) -> list[JsonObject]:
        """The rows of a stored value."""
        value = settings.get(self.key) or ()
        if isinstance(value, Mapping):
            return [{_NAMED: name, **row} for name, row in value.items()]
        return [row for row in value if isinstance(row, dict)]

    def typed_rows(self, texts: Mapping[str, str]) -> object:
        """The value of the rows of a form, None without a filled one. Raises ValidationError."""
        filled = [
            row
            for row in self.rows(texts)
            if any(texts.get(one.name) for one in row if one.look not in {"choice", "tick"})
        ]
        if not self.is_named:
            return [values_of(row, texts, {}) for row in filled] or None
        by_name: JsonObject = {}
        for name, *others in filled:
            key = texts.get(name.name, "")
            if not key or key in by_name:
                message = "Use each name once." if key else "Enter a name."
                raise ValidationError.at(name.name, message)
            by_name[key] = values_of(others, texts, {})
        return by_name or None

    def text_of(self, settings: JsonObject) -> str:
        """The text that shows a stored value; empty without one."""
        value = settings.get(self.key, self.default)
        if self.look == "tick":
            return "on" if value is True else ""
        if self.look == "json":
            return indented(value) if value else ""
        if self.look == "lines":
            return "\n".join(map(str, value or ())) if isinstance(value, list) else ""
        if self.look == "moment":
            return str(value).partition(".")[0].removesuffix("Z")[:16] if value else ""
        if self.look == "value":
            return _as_typed(value)
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
        if self.look == "lines":
            return [line.strip() for line in text.splitlines() if line.strip()]
        if self.look == "moment":
            return f"{text}Z"
        if self.look == "value":
            return _typed_value(text)
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
            f"{path}.{key}" if path else key,
            key,
            words.get(key) or (_label(key), ""),
            _resolved(described, schema),
            offers.get(key),
            is_required=key in required,
            columns=_columns(described, schema, words, offers, without),
        )
        for key, described in schema["properties"].items()
        if key not in without
    ]


def texts_of(controls: Sequence[Control], settings: JsonObject) -> dict[str, str]:
    """The texts of a form that shows stored values."""
    return {name: text for name, text in _stored_texts(controls, settings) if text}


def _stored_texts(controls: Sequence[Control], settings: JsonObject) -> Iterator[tuple[str, str]]:
    for control in controls:
        if control.look != "rows":
            yield control.name, control.text_of(settings)
            continue
        for place, row in enumerate(control.stored_rows(settings)):
            yield from _stored_texts(control.row(place), row)


def values_of(
    controls: Sequence[Control], texts: Mapping[str, str], before: JsonObject
) -> JsonObject:
    """The values `before`, changed by a form; a text that was emptied takes its key away.

    Whatever is shown and sent back unchanged stays exactly as it is. Raises ValidationError.
    """
    values = dict(before)
    for control in controls:
        if control.look == "rows":
            if control.key in before and _own(texts, control) == texts_of([control], before):
                continue
            values.pop(control.key, None)
            if (rows := control.typed_rows(texts)) is not None:
                values[control.key] = rows
            continue
        text = texts.get(control.name, "")
        if control.key in before and text == control.text_of(before):
            continue
        values.pop(control.key, None)
        value = control.value_of(text)
        if value is not None:
            values[control.key] = value
    return values


def _own(texts: Mapping[str, str], control: Control) -> dict[str, str]:
    """The texts of the rows of a control."""
    return {name: text for name, text in texts.items() if name.startswith(f"{control.name}.")}


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


def _columns(
    described: JsonObject,
    schema: JsonObject,
    words: Words,
    offers: Offers,
    without: Collection[str],
) -> Sequence[Control]:
    """The inputs of a row of a list of objects, or of an object whose keys name objects."""
    resolved = _resolved(described, schema)
    items = resolved.get("items") or resolved.get("additionalProperties")
    if not isinstance(items, dict) or "$ref" not in items:
        return ()
    row = _resolved(items, schema)
    cells = [
        _control(
            key,
            key,
            words.get(key) or (_label(key), ""),
            _resolved(part, schema),
            offers.get(key),
            is_required=False,
        )
        for key, part in row.get("properties", {}).items()
        if key not in without
    ]
    has_names = resolved.get("type") == "object"
    name = _control(_NAMED, _NAMED, ("Name", ""), {"type": "string"}, None, is_required=False)
    cells = [name, *cells] if has_names else cells
    needed = row.get("required", ())
    return [_chosen(one) if one.key in needed else one for one in cells if one.look in _CELLS]


def _chosen(control: Control) -> Control:
    """The control of a value that each row has: a choice begins with its first value."""
    return replace(control, choices=[one for one in control.choices if one[0]])


def _control(  # the parts of a description
    name: str,
    key: str,
    words: tuple[str, str],
    described: JsonObject,
    offered: Sequence[tuple[str, str]] | None,
    *,
    is_required: bool,
    columns: Sequence[Control] = (),
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
        look="choice" if choices is not None else "rows" if columns else _look(described),
        choices=choices or (),
        attributes=_attributes(described) | ({"required": ""} if is_required else {}),
        default=default,
        columns=columns,
        is_named=described.get("type") == "object",
    )


def _look(described: JsonObject) -> Look:
    match described.get("type"):
        case "boolean":
            return "tick"
        case "integer" | "number":
            return "number"
        case "string" if described.get("format") == "date-time":
            return "moment"
        case "string":
            return "long" if described.get("maxLength", 0) > _LONG else "line"
        case "array" if (described.get("items") or {}).get("type") == "string":
            return "lines"
        case None:
            return "value"
    return "json"


def _attributes(described: JsonObject) -> dict[str, object]:
    bounds = {"minimum": "min", "maximum": "max", "maxLength": "maxlength", "pattern": "pattern"}
    attributes = {name: described[bound] for bound, name in bounds.items() if bound in described}
    if described.get("type") == "array":
        return {}
    if described.get("type") == "number":
        attributes["step"] = "any"
    return attributes


def _label(key: str) -> str:
    """`roundToMinutes` → `Round to minutes`."""
    return sentence_case(_WORD.sub(" ", key).lower())


def _as_typed(value: object) -> str:
    """A value of any kind as a person types it: a text as it is, unless that reads as another."""
    if isinstance(value, str) and isinstance(_typed_value(value), str):
        return value
    return "" if value is None else compact(value)


def _typed_value(text: str) -> object:
    """The JSON value that was typed, else the text."""
    try:
        return parse(text.encode())
    except StrictJsonError:
        return text


def _number(text: str) -> int | float | str:
    if len(text) > _MOST_DIGITS:
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


WIDTH, HEIGHT = 960, 120
_LEAST = 2.5
"""The height of a bar that is not nothing: one failure among thousands is still seen."""
_GAP = 0.22
"""The share of a column that stays free."""
STACK = (RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.TIMED_OUT, RunStatus.FAILED)
"""The outcomes from the bottom up."""


@dataclass(frozen=True, slots=True)
class Bar:
    status: RunStatus
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A period with its bars, and in words."""

    x: float
    start: datetime
    bars: Sequence[Bar]
    runs: int
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The columns of a chart; `top` is the number of runs that its height stands for."""

    columns: Sequence[Column]
    top: int
    step: float
    width: float
    statistics: RunStatistics


def chart_of(statistics: RunStatistics) -> Chart:
    """Draw the periods of statistics."""
    periods = statistics.periods
    top = max((period.runs for period in periods), default=0)
    step = WIDTH / max(len(periods), 1)
    columns = [
        Column(round(step * place, 2), period.start, _bars(period, top), period.runs, _text(period))
        for place, period in enumerate(periods)
    ]
    return Chart(columns, top, round(step, 2), round(step * (1 - _GAP), 2), statistics)


def _bars(period: Period, top: int) -> Sequence[Bar]:
    heights = {
        status: max(_LEAST, HEIGHT * number / top)
        for status in STACK
        if (number := period.outcomes.get(status, 0))
    }
    # The height lent to small bars is taken from the tall ones: the column keeps its height.
    scale = HEIGHT * period.runs / top / sum(heights.values()) if heights else 1
    bars, y = [], float(HEIGHT)
    for status, height in heights.items():
        drawn = max(_LEAST, height * min(scale, 1))
        y -= drawn
        bars.append(Bar(status, round(max(y, 0), 2), round(drawn, 2)))
    return bars


def _text(period: Period) -> str:
    """`12 runs: 10 succeeded, 2 failed`."""
    outcomes = [
        f"{period.outcomes[status]:,} {status.value.replace('_', ' ')}"
        for status in STACK
        if period.outcomes.get(status)
    ]
    runs = f"{period.runs:,} run{'' if period.runs == 1 else 's'}"
    return f"{runs}: {', '.join(outcomes)}" if outcomes else runs
