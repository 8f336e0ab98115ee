"""The cells and rows of a table that an import leaves out, and why. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from pydantic_core import to_json

from models.core.values import InvalidValueError, storable_texts
from models.data.fields.rules.fields import NUMERIC_KINDS, OPTION_KINDS, FieldKind, FieldSpec
from models.data.fields.rules.value_conversion import LOST, TEXT_KINDS
from models.data.fields.shapes import MAX_OPTIONS
from models.data.records.rules.values import MAX_OPTION_NAME, may_grow
from models.sources.tabular.rules.cells import Cell, ErrorCell, shown_cell
from models.sources.tabular.rules.conversion import ConvertedRow, MappedColumn, converter
from models.sources.tabular.rules.formats import Conventions

MAX_REJECTIONS = 10_000
"""Rejections of a run that are kept; all of them are counted."""
LONGEST_VALUE = 1_000
"""Characters of a rejected value that are kept."""

DUPLICATE = "Row skipped: a later row has the same key values."
IN_TRASH = "Row skipped: its record is in the trash."

_NOT: Mapping[FieldKind, str] = MappingProxyType(
    {
        FieldKind.NUMBER: "Not a number.",
        FieldKind.CURRENCY: "Not an amount.",
        FieldKind.PERCENT: "Not a percentage.",
        FieldKind.RATING: "Not a whole number from 0 to 10.",
        FieldKind.DURATION: "Not a duration such as 1:30 or 1:30:00.",
        FieldKind.CHECKBOX: "Neither yes nor no.",
        FieldKind.DATE: "Not a valid date.",
        FieldKind.DATETIME: "Not a valid date and time.",
        FieldKind.TIME: "Not a time such as 09:30.",
        FieldKind.SELECT: "Not an option of the field.",
        FieldKind.STATUS: "Not an option of the field.",
        FieldKind.MULTI_SELECT: "Has a value that is not an option of the field.",
        FieldKind.EMAIL: "Not an email address.",
        FieldKind.URL: "Not an HTTP or HTTPS address.",
        FieldKind.PHONE: "Not a phone number.",
        FieldKind.PERSON: "Not the ID of a member.",
        FieldKind.FILE: "Not the ID of a file.",
        FieldKind.LOCATION: "Not a location such as 52.52, 13.405.",
        FieldKind.JSON: "Nested too deep.",
    }
)
_BY_DAY = frozenset({FieldKind.DATE, FieldKind.DATETIME})


class Rejection(NamedTuple):
    """A cell that has no form in its field, or a row that makes no record: without a column.

    `row` is that of the file, counted from 1.
    """

    row: int
    column: str | None
    field_key: str | None
    value: str | None
    reason: str


class Rejections:
    """Tells why cells and rows are left out, for the columns of one mapping."""

    def __init__(
        self, names: Sequence[str], columns: Sequence[MappedColumn], conventions: Conventions
    ) -> None:
        self._names, self._columns, self._conventions = names, columns, conventions

    def of(self, number: int, row: Sequence[Cell], converted: ConvertedRow) -> Iterator[Rejection]:
        """Tell what is left out of a row: first its cells, then the row itself."""
        for place in converted.lost_columns:
            column = self._columns[place]
            assert column.place is not None, "a cell that is lost has a column"
            value = row[column.place]
            yield Rejection(
                number,
                self._names[column.place],
                column.spec.key,
                written(value),
                reason(column.spec, self._conventions, value),
            )
        for place in converted.missing:
            spec = self._columns[place].spec
            why = "is required"
            if not spec.required:
                fault = "its value does not fit" if place in converted.lost_columns else "is empty"
                why = f"is a key field, and {fault}"
            yield Rejection(number, None, spec.key, None, f"Row skipped: {spec.label} {why}.")
        if converted.skipped and not converted.missing:
            why = "none of its values fit." if converted.lost_columns else "it has no values."
            yield Rejection(number, None, None, None, f"Row skipped: {why}")


def written(value: Cell) -> str:
    """A cell as text, so far as it is kept."""
    shown = shown_cell(value)
    text = shown if isinstance(shown, str) else to_json(shown, inf_nan_mode="constants").decode()
    kept = text[: LONGEST_VALUE + 1].replace("\x00", "\ufffd")
    kept = kept.encode(errors="replace").decode()
    return kept if len(kept) <= LONGEST_VALUE else f"{kept[: LONGEST_VALUE - 1]}…"


def reason(spec: FieldSpec, conventions: Conventions, value: Cell) -> str:
    """The reason why a cell has no form in a field, in a sentence."""
    if isinstance(value, ErrorCell):
        return "The cell has an error instead of a value."
    if isinstance(value, str) and not storable_texts([value], len(value)):
        return "Has a character that cannot be stored."
    if spec.kind in TEXT_KINDS:
        return "Too long for the field."
    if spec.kind in _BY_DAY and isinstance(value, str):
        return _day_reason(spec, conventions, value)
    if spec.kind in NUMERIC_KINDS:
        return _number_reason(spec, conventions, value)
    if spec.kind in OPTION_KINDS and may_grow(spec):
        return (
            f"Not a name of an option, which has up to {MAX_OPTION_NAME} characters, or the field"
            f" has {MAX_OPTIONS:,} options already."
        )
    return _NOT.get(spec.kind, "Does not match the type of the field.")


def _day_reason(spec: FieldSpec, conventions: Conventions, text: str) -> str:
    fits = [
        order
        for order in ("dmy", "mdy")
        if _fits(spec, replace(conventions, date_order=order), text)
    ]
    if len(fits) == 2 and conventions.date_order is None:
        return "Ambiguous date: choose the date order."
    if fits:
        is_open = conventions.date_order is None
        which = (
            "Unknown date order: it reads as" if is_open else "Not in the date order: it reads as"
        )
        return f"{which} {_ORDERS[fits[0]]}."
    return _NOT[spec.kind]


_ORDERS = {"dmy": "day, month, year", "mdy": "month, day, year"}


def _number_reason(spec: FieldSpec, conventions: Conventions, value: Cell) -> str:
    unbounded = replace(spec, settings={"precision": spec.settings.get("precision")})
    number = converter(unbounded, conventions)(value)
    if number is not LOST:
        lowest, highest = spec.settings.get("min"), spec.settings.get("max")
        if lowest is not None and number < lowest:
            return f"Less than the minimum of {lowest:g}."
        if highest is not None and number > highest:
            return f"Greater than the maximum of {highest:g}."
        if code := spec.settings.get("currencyCode"):
            return f"An amount of another currency than {code}."
    other = replace(conventions, decimal_separator="," if _points(conventions) else ".")
    if isinstance(value, str) and number is LOST and _fits(unbounded, other, value):
        return f"Uses a decimal {'comma' if _points(conventions) else 'point'}."
    return _NOT[spec.kind]


def _points(conventions: Conventions) -> bool:
    return conventions.decimal_separator == "."


def _fits(spec: FieldSpec, conventions: Conventions, value: Cell) -> bool:
    try:
        return converter(spec, conventions)(value) is not LOST
    except InvalidValueError:
        return False
