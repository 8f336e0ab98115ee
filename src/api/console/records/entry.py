"""Values as people type or choose them in forms, and back (interface.md#kind-changes)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from api.console.words import plain
from api.kernel.request import ApiRequest
from models.core.base import Id, JsonObject
from models.core.filters.grammar import ValueForm
from models.core.pagination import MAX_LIMIT
from models.data.fields.rules.fields import NUMERIC_KINDS, FieldKind, FieldSpec, FieldValue
from models.data.fields.rules.value_conversion import TEXT_KINDS, Lost, as_text, convert_value
from models.data.fields.rules.values import value_form
from models.data.record_exports.exports import names_of
from models.data.records.queries import QueryTooSlowError
from models.data.records.search import seen_titles, titled
from models.data.records.shapes import RecordDetail
from models.people.members import list_members, members_called
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

PREFIX = "field."
_TYPED_ELSEWHERE = frozenset({FieldKind.PERSON, FieldKind.FILE})
"""Kinds whose values are ids, which no one types."""
_TYPED = FieldSpec(id=Id(int=0), key="typed", label="Typed", kind=FieldKind.LONG_TEXT)
_INPUTS: Mapping[FieldKind, str] = {
    FieldKind.DATE: "date",
    FieldKind.TIME: "time",
    FieldKind.EMAIL: "email",
    FieldKind.URL: "url",
    FieldKind.PHONE: "tel",
}
_NUMBERS = NUMERIC_KINDS | {FieldKind.RATING}
_LONG = frozenset({FieldKind.LONG_TEXT, FieldKind.RICH_TEXT, FieldKind.JSON})
_HINTS: Mapping[FieldKind, str] = {
    FieldKind.DATETIME: "2026-01-31T09:30, or with an offset: 2026-01-31T09:30+01:00",
    FieldKind.DURATION: "H:MM or H:MM:SS",
    FieldKind.LOCATION: '{"lat": 52.52, "lng": 13.4, "label": "Berlin"}',
    FieldKind.JSON: "JSON",
    FieldKind.RATING: "0 to 10",
}
_NOUNS: Mapping[FieldKind, str] = {
    FieldKind.CURRENCY: "amount",
    FieldKind.JSON: "value",
    FieldKind.PERCENT: "percentage",
    FieldKind.PHONE: "phone number",
}
"""Nouns for the values of kinds whose names are none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A person or a record that a field holds."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of a form: its control, and the text in it."""

    spec: FieldSpec
    control: str
    text: str = ""
    options: frozenset[str] = frozenset()
    """The keys of the options that are ticked."""
    problem: str = ""
    choices: Sequence[Choice] = ()
    """The people or records that are held, each with a box that keeps it."""

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.spec.key}"

    @property
    def input_type(self) -> str:
        return _INPUTS.get(self.spec.kind, "text")

    @property
    def hint(self) -> str:
        return _HINTS.get(self.spec.kind, "")


@dataclass(frozen=True, slots=True)
class Prefill:
    """The values of a record template, as a form shows them."""

    title: str | None
    data: JsonObject
    relations: Mapping[str, Sequence[str]]


Stored = RecordDetail | Prefill


def is_typed(spec: FieldSpec) -> bool:
    """True for a field whose values a person can type or choose."""
    return spec.stored and spec.kind not in _TYPED_ELSEWHERE


def entry_of(spec: FieldSpec, record: Stored | None) -> Entry:
    """The field of a form with the value a record has; without a record, with the default."""
    value = _known_value(spec, record)
    control = _control(spec)
    if control in {"choice", "choices"}:
        keys = value if isinstance(value, list) else [] if value is None else [value]
        return Entry(spec, control, options=frozenset(map(str, keys)))
    if control == "check":
        return Entry(spec, control, "yes" if value is True else "no" if value is False else "")
    return Entry(spec, control, "" if value is None else as_text(spec, value))


def _known_value(spec: FieldSpec, record: Stored | None) -> FieldValue:
    if record is None:
        return None
    value: FieldValue = record.title if spec.title else record.data.get(spec.key)
    return value


def _control(spec: FieldSpec) -> str:
    match spec.kind:
        case FieldKind.MULTI_SELECT:
            return "choices"
        case FieldKind.SELECT | FieldKind.STATUS:
            return "choice"
        case FieldKind.CHECKBOX:
            return "check"
        case kind if kind in _LONG:
            return "long"
        case kind if kind in _NUMBERS:
            return "number"
    return "line"


@dataclass(frozen=True, slots=True)
class Typed:
    """The values of a form by field key, and what is wrong with the texts that have none."""

    data: JsonObject
    problems: Sequence[Detail]
    relations: JsonObject = field(default_factory=dict)


def read_typed(specs: Sequence[FieldSpec], fields: Mapping[str, Any]) -> Typed:
    """The values in the fields of a form; a field without a text is null.

    Options of a field of several are fields of their own, `field.<key>.<option>`.
    """
    data: JsonObject = {}
    problems: list[Detail] = []
    for spec in specs:
        value = typed_value(spec, _typed_text(spec, fields))
        if isinstance(value, Lost):
            problems.append(Detail(spec.label, _refusal(spec)))
        else:
            data[spec.key] = value
    return Typed(data, problems)


def typed_value(spec: FieldSpec, text: str | Sequence[str] | None) -> FieldValue | Lost:
    """The value of one text, or of several options; LOST for a text without one."""
    if text is None or text in ("", []):
        return None
    if spec.kind is FieldKind.MULTI_SELECT or not isinstance(text, str):
        return list(text) if not isinstance(text, str) else [text]
    return text if spec.kind in TEXT_KINDS else convert_value(_TYPED, spec, text)


def _typed_text(spec: FieldSpec, fields: Mapping[str, Any]) -> str | Sequence[str] | None:
    if spec.kind is FieldKind.MULTI_SELECT:
        names = [option.key for option in spec.options]
        return [key for key in names if f"{PREFIX}{spec.key}.{key}" in fields]
    text: str | None = fields.get(f"{PREFIX}{spec.key}")
    return text


def retyped(entry: Entry, fields: Mapping[str, Any], problems: Mapping[str, str]) -> Entry:
    """The field of a form with the text that was typed, and what is wrong with it."""
    text = _typed_text(entry.spec, fields)
    problem = problems.get(entry.spec.label) or problems.get(f"data.{entry.spec.key}", "")
    if entry.control in {"choice", "choices"}:
        keys = [text] if isinstance(text, str) else text or []
        return Entry(entry.spec, entry.control, options=frozenset(keys), problem=problem)
    return Entry(entry.spec, entry.control, str(text or ""), problem=problem)


def _refusal(spec: FieldSpec) -> str:
    hint = _HINTS.get(spec.kind)
    noun = _NOUNS.get(spec.kind, plain(spec.kind))
    return f"Enter a valid {noun} ({hint})." if hint else f"Enter a valid {noun}."


MOST_LINKS = 100
"""Records that a form lists of a relation; one of more is changed from its other side."""
BEFORE_ID = " · "
"""Stands before the id of a record where its title does not tell which one is meant."""


@dataclass(frozen=True, slots=True)
class _Unknown:
    """The reason that a text names nothing."""

    message: str


def is_chosen(spec: FieldSpec) -> bool:
    """True for a field of people or of related records."""
    return spec.relation or spec.kind is FieldKind.PERSON


def entered(specs: Sequence[FieldSpec], record: Stored | None) -> list[FieldSpec]:
    """The fields that a form has, which a person types or chooses."""
    return [
        spec
        for spec in specs
        if is_typed(spec) or (is_chosen(spec) and len(_held(spec, record)) <= MOST_LINKS)
    ]


async def entries_of(
    request: ApiRequest, specs: Sequence[FieldSpec], record: Stored | None
) -> list[Entry]:
    """The fields of a form as a record has them."""
    held = {spec.key: _held(spec, record) for spec in specs if is_chosen(spec)}
    names = await _names(request, specs, held)
    return [
        _entry(spec, held[spec.key], names) if spec.key in held else entry_of(spec, record)
        for spec in specs
    ]


async def again(
    request: ApiRequest,
    specs: Sequence[FieldSpec],
    fields: Mapping[str, Any],
    problems: Mapping[str, str],
) -> list[Entry]:
    """The fields of a form as it was sent, and what is wrong with each."""
    ticked_ids = {spec.key: _ticked(spec, fields) for spec in specs if is_chosen(spec)}
    names = await _names(request, specs, ticked_ids)
    return [
        replace(
            _entry(spec, ticked_ids[spec.key], names),
            text=str(fields.get(f"{PREFIX}{spec.key}") or ""),
            problem=problems.get(spec.label) or _problem(spec, problems),
        )
        if spec.key in ticked_ids
        else retyped(entry_of(spec, None), fields, problems)
        for spec in specs
    ]


async def read_fields(
    request: ApiRequest, specs: Sequence[FieldSpec], fields: Mapping[str, Any]
) -> Typed:
    """The values of a form, and the people and records that its texts name."""
    typed = read_typed([spec for spec in specs if is_typed(spec)], fields)
    data, relations, problems = dict(typed.data), dict(typed.relations), list(typed.problems)
    for spec in filter(is_chosen, specs):
        chosen = await _read(request, spec, fields)
        if isinstance(chosen, _Unknown):
            problems.append(Detail(spec.label, chosen.message))
        else:
            values: JsonObject = relations if spec.relation else data
            values[spec.key] = chosen
    return Typed(data, problems, relations)


async def people(request: ApiRequest, entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """The members that a form suggests: what is typed for each, and their name."""
    if not any(entry.control == "people" for entry in entries):
        return []
    page = request.page("members", MAX_LIMIT, None)
    listed = await list_members(request.work, request.actor, page)
    return [(one.email or str(one.user_id), one.name or "") for one in listed.members]


def _held(spec: FieldSpec, record: Stored | None) -> Sequence[str]:
    """The ids that a record holds in a field."""
    if record is None:
        return []
    if spec.relation:
        if isinstance(record, Prefill):
            return record.relations.get(spec.key, ())
        return [str(one.id) for one in record.related.get(spec.key, ())]
    ids: Sequence[str] = record.data.get(spec.key) or []
    return ids


def _ticked(spec: FieldSpec, fields: Mapping[str, Any]) -> Sequence[str]:
    start = f"{PREFIX}{spec.key}."
    names = (name.removeprefix(start) for name in fields if name.startswith(start))
    return [name for name in names if parse_id(name) is not None][:MOST_LINKS]


async def _names(
    request: ApiRequest, specs: Sequence[FieldSpec], held: Mapping[str, Sequence[str]]
) -> Mapping[str, str]:
    """The names of people and the titles of records, as far as the reader sees them."""
    work, actor = request.work, request.actor
    linked = {one for spec in specs if spec.relation for one in held[spec.key]}
    members = {
        one for spec in specs if spec.key in held and not spec.relation for one in held[spec.key]
    }
    titles = await seen_titles(work, actor, [Id(one) for one in linked]) if linked else {}
    names = await names_of(work, actor.workspace_id, members)
    return {str(record_id): title or "Untitled" for record_id, title in titles.items()} | names


def _entry(spec: FieldSpec, ids: Sequence[str], names: Mapping[str, str]) -> Entry:
    control = "records" if spec.relation else "people"
    return Entry(spec, control, choices=[Choice(one, names.get(one, one)) for one in ids])


def _problem(spec: FieldSpec, problems: Mapping[str, str]) -> str:
    starts = (f"data.{spec.key}", f"relations.{spec.key}")
    return " ".join(text for path, text in problems.items() if path.startswith(starts))


async def _read(
    request: ApiRequest, spec: FieldSpec, fields: Mapping[str, Any]
) -> list[str] | _Unknown:
    """The ids that a form gives a field: the ticked ones, and the one that its text names."""
    ids = list(_ticked(spec, fields))
    text = str(fields.get(f"{PREFIX}{spec.key}") or "").strip()
    for one in [text] if spec.relation else text.split(","):
        if not one.strip():
            continue
        named = await (_record if spec.relation else _person)(request, spec, one.strip())
        if isinstance(named, _Unknown):
            return named
        ids = [named] if spec.settings.get("cardinality") == "one" else [*ids, named]
    return list(dict.fromkeys(ids))


async def _record(request: ApiRequest, spec: FieldSpec, text: str) -> str | _Unknown:
    record_id = parse_id(text.rpartition(BEFORE_ID)[2])
    if record_id is not None:
        seen = await seen_titles(request.work, request.actor, [record_id])
        return str(record_id) if seen else _Unknown(f"No record with the ID {record_id}.")
    try:
        ids = await titled(request.work, request.actor, spec.target_id, text)
    except QueryTooSlowError:
        return _Unknown("Too many records to search by title. Enter the record ID.")
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        return _Unknown(f"Several records are named “{text}”. Choose one, or enter its ID.")
    return _Unknown(f"No record named “{text}”. Enter the full title or an ID.")


async def _person(request: ApiRequest, _: FieldSpec, text: str) -> str | _Unknown:
    user_id = parse_id(text)
    if user_id is not None:
        return str(user_id)
    ids = await members_called(request.work, request.actor.workspace_id, text)
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        return _Unknown(f"Several members are named “{text}”. Enter an email address.")
    return _Unknown(f"No member with the name or email address “{text}”.")


class Comparison(StrEnum):
    """The comparisons that a person chooses from."""

    CONTAINS = "contains"
    IS = "is"
    IS_NOT = "is_not"
    MORE = "more"
    LESS = "less"
    EMPTY = "empty"
    FILLED = "filled"


COMPARISONS = [
    ("contains", "contains"),
    ("is", "is"),
    ("is_not", "is not"),
    ("more", "> / after"),
    ("less", "< / before"),
    ("empty", "is empty"),
    ("filled", "is not empty"),
]
_OPS = {
    Comparison.CONTAINS: "contains",
    Comparison.IS: "eq",
    Comparison.IS_NOT: "ne",
    Comparison.MORE: "gt",
    Comparison.LESS: "lt",
    Comparison.EMPTY: "is_empty",
    Comparison.FILLED: "is_not_empty",
}
_OF_SETS = {Comparison.IS: "has_any", Comparison.IS_NOT: "has_none", Comparison.CONTAINS: "has_any"}
_BY_OP = {op: comparison for comparison, op in (_OPS | _OF_SETS).items()} | {
    op: comparison for comparison, op in _OPS.items()
}


def leaf_of(spec: FieldSpec, comparison: Comparison, text: str | None) -> JsonObject:
    """The filter that compares a field with a text. Raises ValidationError at `value`."""
    leaf: JsonObject = {"field": spec.key, "op": _OPS[comparison]}
    if comparison in {Comparison.EMPTY, Comparison.FILLED}:
        return leaf
    if text is None:
        raise ValidationError.at("value", "Enter a value to compare with.")
    if value_form(spec) is ValueForm.OPTIONS:
        return leaf | {"op": _OF_SETS.get(comparison, leaf["op"]), "value": [text]}
    value = typed_value(spec, text) if is_typed(spec) else text
    if isinstance(value, Lost):
        raise ValidationError.at("value", _refusal(spec))
    return leaf | {"value": value}


def read_leaf(leaf: Mapping[str, object]) -> tuple[str, Comparison, str] | None:
    """The field, the comparison and the text of a filter that `leaf_of` makes; None for others."""
    comparison = _BY_OP.get(str(leaf.get("op")))
    value = leaf.get("value", "")
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if comparison is None or not isinstance(value, str | int | float) or "field" not in leaf:
        return None
    text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    return str(leaf["field"]), comparison, text
