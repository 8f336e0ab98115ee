"""Values as people type them into forms, and back (decisions C5, Kind change)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.core.base import Id, JsonObject
from models.data.fields.rules.fields import FieldSpec, FieldValue
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.value_conversion import TEXT_KINDS, Lost, as_text, convert_value
from models.data.records.shapes import RecordDetail
from runtime.errors import Detail

PREFIX = "field."
_TYPED_ELSEWHERE = frozenset({FieldKind.PERSON, FieldKind.FILE})
"""Kinds whose values are ids, which nobody types."""
_TYPED = FieldSpec(id=Id(int=0), key="typed", label="Typed", kind=FieldKind.LONG_TEXT)
_INPUTS: Mapping[FieldKind, str] = {
    FieldKind.DATE: "date",
    FieldKind.TIME: "time",
    FieldKind.EMAIL: "email",
    FieldKind.URL: "url",
    FieldKind.PHONE: "tel",
}
_NUMBERS = frozenset({FieldKind.NUMBER, FieldKind.CURRENCY, FieldKind.PERCENT, FieldKind.RATING})
_LONG = frozenset({FieldKind.LONG_TEXT, FieldKind.RICH_TEXT, FieldKind.JSON})
_HINTS: Mapping[FieldKind, str] = {
    FieldKind.DATETIME: "2026-01-31T09:30, or with an offset: 2026-01-31T09:30+01:00",
    FieldKind.DURATION: "H:MM or H:MM:SS",
    FieldKind.LOCATION: '{"lat": 52.52, "lng": 13.4, "label": "Berlin"}',
    FieldKind.JSON: "JSON",
    FieldKind.RATING: "0 to 10",
}


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


def is_typed(spec: FieldSpec) -> bool:
    """True for a field whose values a person can type or choose."""
    return spec.stored and spec.kind not in _TYPED_ELSEWHERE


def entry_of(spec: FieldSpec, record: RecordDetail | None) -> Entry:
    """The field of a form with the value a record has; without a record, with the default."""
    value = _known_value(spec, record)
    control = _control(spec)
    if control in {"choice", "choices"}:
        keys = value if isinstance(value, list) else [] if value is None else [value]
        return Entry(spec, control, options=frozenset(map(str, keys)))
    if control == "check":
        return Entry(spec, control, "yes" if value is True else "no" if value is False else "")
    return Entry(spec, control, "" if value is None else as_text(spec, value))


def _known_value(spec: FieldSpec, record: RecordDetail | None) -> FieldValue:
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
    kind = spec.kind.value.replace("_", " ")
    return f"This is no {kind}. Write it as {hint}." if hint else f"This is no {kind}."
