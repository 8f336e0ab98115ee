"""Fields, values and changes of records as pages show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from api.console.words import brief
from api.kernel.routing import ApiRequest
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.filters.grammar import ValueForm
from models.core.values import InvalidValueError, moment
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import NUMERIC_KINDS, FieldKind, FieldSpec, FieldValue, Option
from models.data.fields.rules.value_conversion import clock, digits, rounded
from models.data.fields.rules.values import value_form
from models.data.forms.shapes import PublicField
from models.data.record_changes.history import RecordChangeShape
from models.data.record_exports.exports import names_of
from models.data.record_exports.rules import Legend, cell_of, named_ids, rows_of
from models.data.records.shapes import RecordDetail
from models.workspace.share_links.links import SharedField
from runtime.database import UnitOfWork
from runtime.ids import new_id

_COLORS = frozenset(
    {"gray", "brown", "orange", "yellow", "green", "blue", "purple", "pink", "red", "teal"}
)
_UTC = ZoneInfo("UTC")
_NAMELESS = Legend({}, _UTC)
_LONGEST = 120
"""Characters of a text in a list; the page of the record has all of them."""


@dataclass(frozen=True, slots=True)
class Part:
    """An option with its colour, or a record with its page."""

    text: str
    color: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as a page shows it; the `kind` tells the template how."""

    kind: str
    text: str = ""
    parts: Sequence[Part] = ()
    at: datetime | None = None
    link: str = ""

    @property
    def empty(self) -> bool:
        return not (self.text or self.parts or self.at)


EMPTY = Cell("text")


async def legend_of(
    work: UnitOfWork, actor: Actor, records: Sequence[RecordDetail], specs: Sequence[FieldSpec]
) -> Legend:
    """The names of the people and files in these records."""
    ids = set(named_ids(records, specs))
    return Legend(await names_of(work, actor.workspace_id, ids), _UTC)


def cells_of(
    record: RecordDetail, specs: Sequence[FieldSpec], legend: Legend, *, whole: bool = False
) -> list[Cell]:
    """The values of a record in these fields; long texts are cut unless `whole`."""
    (texts,) = rows_of([record], specs, legend)
    longest = None if whole else _LONGEST
    return [
        _cell(record, spec, "" if text is None else _written(spec, text)[:longest])
        for spec, text in zip(specs, texts, strict=True)
    ]


def words_of(spec: FieldSpec | None, value: FieldValue, legend: Legend) -> str:
    """A value that a field had, in words; of a field that is gone, as it was kept."""
    if value is None or spec is None or spec.relation or value == []:
        return "" if value in (None, []) else brief(value)
    try:
        text = cell_of(value, spec, legend)
    except (InvalidValueError, KeyError, TypeError, AttributeError):
        # The field has been of another kind since.
        return brief(value)
    if isinstance(text, bool):
        return "yes" if text else "no"
    return "" if text is None else brief(_written(spec, text))


def _cell(record: RecordDetail, spec: FieldSpec, text: str) -> Cell:
    value = _value(record, spec)
    if spec.relation:
        related = record.related.get(spec.key, ())
        return Cell("parts", parts=[Part(one.title, path=f"/records/{one.id}") for one in related])
    return _shaped(spec, value, text)


def value_cell(spec: FieldSpec, value: FieldValue, longest: int) -> Cell:
    """A value of a field that names no one and no other record; long texts are cut."""
    text = None if value is None else cell_of(value, spec, _NAMELESS)
    return _shaped(spec, value, "" if text is None else _written(spec, text)[:longest])


def _shaped(spec: FieldSpec, value: FieldValue, text: str) -> Cell:
    if value is None or text == "":
        return EMPTY
    match value_form(spec):
        case ValueForm.OPTION | ValueForm.OPTIONS:
            return Cell("options", text, parts=list(_options(spec, value)))
        case ValueForm.BOOLEAN:
            return Cell("check", "yes" if value is True else "no")
        case ValueForm.MOMENT if isinstance(value, str):
            return Cell("moment", text, at=moment(value).astimezone(UTC))
        case ValueForm.DAY:
            return Cell("day", text)
        case ValueForm.NUMBER if spec.kind is FieldKind.RATING:
            return Cell("stars", text)
        case ValueForm.NUMBER:
            return Cell("number", text)
        case ValueForm.OPAQUE if spec.kind is not FieldKind.FORMULA:
            return Cell("code", text)
        case _:
            return Cell("text", text, link=_link(spec, text))


def _value(record: RecordDetail, spec: FieldSpec) -> FieldValue:
    if spec.title:
        return record.title
    held: Mapping[str, Any] = record.data
    if spec.computed:
        held = record.computed
    elif spec.system:
        held = record.system
    value: FieldValue = held.get(spec.key)
    return value


def _options(spec: FieldSpec, value: FieldValue) -> Iterable[Part]:
    known = {option.key: option for option in spec.options}
    for key in value if isinstance(value, list) else [value]:
        option = known.get(str(key))
        if option is None:
            yield Part(str(key))
        else:
            color = option.color.lower()
            yield Part(option.name, color if color in _COLORS else "gray")


def _written(spec: FieldSpec, value: str | float) -> str:
    """A number as people write it: with its unit, grouped by thousands."""
    if isinstance(value, str | bool):
        return str(value)
    if spec.kind in {FieldKind.DURATION, FieldKind.TIMER} and isinstance(value, int):
        return clock(value)
    if spec.kind is FieldKind.RATING:
        return "★" * int(value)
    return _with_unit(spec, value) if spec.kind in NUMERIC_KINDS else digits(value)


def _with_unit(spec: FieldSpec, value: float) -> str:
    settings = spec.settings
    precision = settings.get("precision")
    number = digits(value) if precision is None else rounded(value, precision)
    if precision is None and spec.kind is FieldKind.CURRENCY and number[-2:-1] == ".":
        number = f"{number}0"
    if settings.get("format") != "plain":
        whole, point, decimals = number.partition(".")
        number = f"{int(whole):,}{point}{decimals}" if whole not in {"-0", ""} else number
    if spec.kind is FieldKind.PERCENT:
        return f"{number} %"
    unit = settings.get("currencyCode") or settings.get("unit") or ""
    return f"{number} {unit}".strip()


def _link(spec: FieldSpec, text: str) -> str:
    """The address behind a value, if it has one that a page may lead to."""
    if spec.kind is FieldKind.EMAIL:
        return f"mailto:{text}"
    if spec.kind is FieldKind.URL and urlsplit(text).scheme in {"http", "https"}:
        return text
    return ""


async def shown_fields(request: ApiRequest, database_id: Id) -> Sequence[FieldSpec]:
    """The fields of a database that hold values, in order."""
    schema = await load_schema(request.work, request.actor.workspace_id, database_id)
    return [spec for spec in schema.fields.values() if spec.kind != "button"]


def outside_spec(field: PublicField | SharedField, *, required: bool = False) -> FieldSpec:
    """A field as far as someone without an account is told of it."""
    options = [
        Option(id=one.key, key=one.key, name=one.name, color=one.color, order=place)
        for place, one in enumerate(field.options)
    ]
    return FieldSpec(
        id=new_id(),
        key=field.key,
        label=field.label,
        kind=field.kind,
        required=required,
        options=tuple(options),
    )


MOST_VALUES = 12
"""Values shown of one change."""


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that a change replaced, in words."""

    label: str
    before: str
    after: str


def in_words(
    changes: Sequence[RecordChangeShape], specs: Sequence[FieldSpec], legend: Legend
) -> Sequence[tuple[RecordChangeShape, Sequence[ChangedValue]]]:
    """Each change with the values that it replaced."""
    known = {spec.key: spec for spec in specs}

    def value(key: str, change: RecordChangeShape) -> ChangedValue:
        spec = known.get(key)
        sides = (change.before or {}).get(key), (change.after or {}).get(key)
        before, after = (words_of(spec, side, legend) for side in sides)
        return ChangedValue(key if spec is None else spec.label, before, after)

    return [(one, [value(key, one) for key in one.changed_keys[:MOST_VALUES]]) for one in changes]
