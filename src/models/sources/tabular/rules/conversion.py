"""Foreign rows made values of records: by cells, by columns, and as lines of COPY. Pure."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, Protocol, TypeAlias, cast
from uuid import UUID, uuid4

from pydantic_core import to_json

from models.core.base import Id
from models.core.values import EXACT, InvalidValueError, all_digits, stored_moment
from models.data.fields.rules import fields as field_specs
from models.data.fields.rules import value_conversion
from models.data.fields.rules.values import KIND_RULES
from models.data.records.rules.values import GrowingField, copied_record, may_grow
from models.sources.tabular.rules.cells import Amount, Cell, ErrorCell, Percent, Typed, shown_cell
from models.sources.tabular.rules.formats import Conventions
from runtime.postgresql import copy_format

Convert: TypeAlias = Callable[[Cell], field_specs.FieldValue | value_conversion.Lost]
"""Gives the stored form of a cell, None for an empty one, LOST for one that has none."""

_REMEMBERED = 10_000
_ESCAPE = "'"
"""Leads what would be a formula in a spreadsheet; a field that cannot have it is filled without."""
_LINES = frozenset(
    {field_specs.FieldKind.EMAIL, field_specs.FieldKind.URL, field_specs.FieldKind.PHONE}
)
_BY_DAY = frozenset({field_specs.FieldKind.DATE, field_specs.FieldKind.DATETIME})
_BY_NUMBER = frozenset(
    {
        field_specs.FieldKind.NUMBER,
        field_specs.FieldKind.CURRENCY,
        field_specs.FieldKind.PERCENT,
        field_specs.FieldKind.RATING,
        field_specs.FieldKind.DURATION,
    }
)


def _of(kind: field_specs.FieldKind) -> field_specs.FieldSpec:
    return field_specs.FieldSpec(id=UUID(int=0), key="cell", label="", kind=kind)


_TEXT, _NUMBER, _CHECKBOX = (
    _of(field_specs.FieldKind.TEXT),
    _of(field_specs.FieldKind.NUMBER),
    _of(field_specs.FieldKind.CHECKBOX),
)
_DATE, _DATETIME, _TIME = (
    _of(field_specs.FieldKind.DATE),
    _of(field_specs.FieldKind.DATETIME),
    _of(field_specs.FieldKind.TIME),
)
_DURATION, _JSON = _of(field_specs.FieldKind.DURATION), _of(field_specs.FieldKind.JSON)


def converter(spec: field_specs.FieldSpec, conventions: Conventions) -> Convert:
    """The conversion of cells to values of a field; equal cells are converted once."""
    if spec.kind in value_conversion.TEXT_KINDS or spec.kind in _LINES:
        return _text(spec)
    cache: dict[Hashable, field_specs.FieldValue | value_conversion.Lost] = {}

    def convert(value: Cell) -> field_specs.FieldValue | value_conversion.Lost:
        if value is None:
            return None
        if isinstance(value, str):
            cell: Hashable = value
        elif isinstance(value, list | dict):
            return _from_json(spec, value)
        else:
            # 1, 1.0 and true are equal, and not the same cell.
            cell = (type(value), value, getattr(value, "currency", None))
        if cell in cache:
            return cache[cell]
        if isinstance(value, str):
            content = _from_text(spec, value, conventions)
            if content is value_conversion.LOST and value.startswith(_ESCAPE):
                content = _from_text(spec, value[1:], conventions)
        else:
            content = _typed(spec, value)
        if len(cache) < _REMEMBERED:
            cache[cell] = content
        return content

    return convert


def _text(spec: field_specs.FieldSpec) -> Convert:
    """The conversion of cells to text; to check one costs less than to remember it."""
    check = KIND_RULES[spec.kind].check
    assert check is not None, "clients write text"
    is_line = spec.kind in _LINES

    def convert(value: Cell) -> field_specs.FieldValue | value_conversion.Lost:
        if value is None:
            return None
        if not isinstance(value, str):
            return _typed(spec, value)
        try:
            return check(spec, value.strip() if is_line else value)
        except InvalidValueError:
            if is_line and value.startswith(_ESCAPE):
                return _checked(spec, value[1:].strip())
            return value_conversion.LOST

    return convert


def growing(field: GrowingField) -> Convert:
    """The conversion of cells to options, which come into being where a name is new."""

    def convert(value: Cell) -> field_specs.FieldValue | value_conversion.Lost:
        if value is None:
            return None
        if isinstance(value, ErrorCell):
            return value_conversion.LOST
        several = field.spec.kind is field_specs.FieldKind.MULTI_SELECT
        if isinstance(value, list):
            names = [str(each) for each in value]
        else:
            text = str(shown_cell(value))
            names = field.spec.names_in(text) if several else [text]
        keys = [field.key_of(name) for name in names if name != ""]
        if any(key not in field.spec.option_keys for key in keys) or not keys:
            return value_conversion.LOST
        if several:
            return list(dict.fromkeys(keys))
        return keys[0] if len(keys) == 1 else value_conversion.LOST

    return convert


def _from_text(
    spec: field_specs.FieldSpec, text: str, conventions: Conventions
) -> field_specs.FieldValue | value_conversion.Lost:
    plain = text.strip()
    try:
        if spec.kind in _BY_DAY:
            plain = conventions.day(plain)
        elif spec.kind in _BY_NUMBER:
            plain = conventions.number(plain)
        elif spec.kind is field_specs.FieldKind.CHECKBOX:
            plain = conventions.truth(plain)
    except InvalidValueError:
        return value_conversion.LOST
    if spec.kind in {field_specs.FieldKind.PERSON, field_specs.FieldKind.FILE}:
        return _checked(spec, [part.strip() for part in plain.split(",")])
    return value_conversion.convert_value(_TEXT, spec, plain)


def _typed(
    spec: field_specs.FieldSpec, value: Typed
) -> field_specs.FieldValue | value_conversion.Lost:
    """The value of a cell that its file has typed."""
    return _BY_TYPE.get(type(value), _from_json)(spec, value)


def _from_day(
    spec: field_specs.FieldSpec, value: date
) -> field_specs.FieldValue | value_conversion.Lost:
    written = value.isoformat()
    return (
        written
        if spec.kind is field_specs.FieldKind.DATE
        else value_conversion.convert_value(_DATE, spec, written)
    )


def _from_time(
    spec: field_specs.FieldSpec, value: time
) -> field_specs.FieldValue | value_conversion.Lost:
    return value_conversion.convert_value(_TIME, spec, value.isoformat("seconds"))


def _from_duration(
    spec: field_specs.FieldSpec, value: timedelta
) -> field_specs.FieldValue | value_conversion.Lost:
    return value_conversion.convert_value(_DURATION, spec, round(value / timedelta(milliseconds=1)))


def _from_truth(
    spec: field_specs.FieldSpec, value: bool
) -> field_specs.FieldValue | value_conversion.Lost:
    return value_conversion.convert_value(_CHECKBOX, spec, value)


def _from_number(
    spec: field_specs.FieldSpec, value: float
) -> field_specs.FieldValue | value_conversion.Lost:
    return value_conversion.convert_value(_NUMBER, spec, value)


def _from_percent(
    spec: field_specs.FieldSpec, value: Percent
) -> field_specs.FieldValue | value_conversion.Lost:
    # A field holds 50 for 50 %; a hundredfold float need not be the nearest one.
    if spec.kind is field_specs.FieldKind.PERCENT:
        return value_conversion.convert_value(_NUMBER, spec, float(_hundredfold(value)))
    if spec.kind in value_conversion.TEXT_KINDS:
        return value_conversion.convert_value(_TEXT, spec, f"{all_digits(_hundredfold(value))}%")
    return _from_number(spec, value)


def _hundredfold(value: Percent) -> Decimal:
    return Decimal(repr(float(value))) * 100


def _from_amount(
    spec: field_specs.FieldSpec, value: Amount
) -> field_specs.FieldValue | value_conversion.Lost:
    stated = [each for each in (value.currency, spec.settings.get("currencyCode")) if each]
    if spec.kind is field_specs.FieldKind.CURRENCY and not value_conversion.is_one_currency(stated):
        return value_conversion.LOST
    if spec.kind in value_conversion.TEXT_KINDS and value.currency:
        return value_conversion.convert_value(
            _TEXT, spec, f"{value_conversion.digits(float(value))} {value.currency}"
        )
    return _from_number(spec, value)


def _from_moment(
    spec: field_specs.FieldSpec, value: datetime
) -> field_specs.FieldValue | value_conversion.Lost:
    """A moment of a workbook has no offset: it is meant in the time zone of the field."""
    if value.tzinfo is not None:
        return value_conversion.convert_value(_DATETIME, spec, stored_moment(value))
    if spec.kind in _BY_DAY:
        written = value.isoformat(" ", "milliseconds" if value.microsecond else "seconds")
        return value_conversion.convert_value(
            _TEXT, spec, written[:10] if spec.kind is field_specs.FieldKind.DATE else written
        )
    return value_conversion.convert_value(_DATETIME, spec, stored_moment(value.replace(tzinfo=UTC)))


def _from_json(
    spec: field_specs.FieldSpec, value: field_specs.FieldValue
) -> field_specs.FieldValue | value_conversion.Lost:
    checked = _checked(spec, value)
    if checked is not value_conversion.LOST:
        return checked
    if spec.kind is field_specs.FieldKind.MULTI_SELECT and isinstance(value, list):
        return value_conversion.convert_value(_TEXT, spec, "\n".join(map(str, value)))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value_conversion.convert_value(_TEXT, spec, ", ".join(value))
    return value_conversion.convert_value(_JSON, spec, value)


def _checked(
    spec: field_specs.FieldSpec, value: object
) -> field_specs.FieldValue | value_conversion.Lost:
    check = KIND_RULES[spec.kind].check
    assert check is not None, "a column fills only fields that clients write"
    try:
        return check(spec, value)
    except InvalidValueError:
        return value_conversion.LOST


_BY_TYPE: Mapping[
    type, Callable[[field_specs.FieldSpec, Any], field_specs.FieldValue | value_conversion.Lost]
] = {
    bool: _from_truth,
    int: _from_number,
    float: _from_number,
    Percent: _from_percent,
    Amount: _from_amount,
    date: _from_day,
    datetime: _from_moment,
    time: _from_time,
    timedelta: _from_duration,
    ErrorCell: lambda _spec, _value: value_conversion.LOST,
}

Values: TypeAlias = Sequence[field_specs.FieldValue | value_conversion.Lost]
AtOnce: TypeAlias = Callable[[Set[type], Sequence[Any]], Values | None]
"""Gives the values of cells of these types, none of them empty; None where it cannot."""


class Column(NamedTuple):
    """The values of a column; `gaps` says that some are empty or lost."""

    values: Values
    gaps: bool


_NUMBER_TEXT = re.compile(r"-?[0-9]{1,9}(?:[.][0-9]{1,6})?")
"""Digits that mean the same by every rule, and of which none is lost in a float."""


def column_converter(
    spec: field_specs.FieldSpec, conventions: Conventions, convert: Convert
) -> Callable[[Sequence[Cell]], Column]:
    """The conversion of columns to values of a field, as `convert` gives them cell by cell.

    A table has few kinds of cells in a column. What holds for each of them is found out by a few
    calls for the column, in place of some for each cell.
    """
    at_once = _at_once(spec, conventions)

    def converted(cells: Sequence[Cell]) -> Column:
        types = {*map(type, cells)}
        gaps = NoneType in types
        filled = [cell for cell in cells if cell is not None] if gaps else cells
        types.discard(NoneType)
        values = at_once(types, filled) if at_once else None
        if values is None:
            values = [convert(cell) for cell in cells]
            return Column(values, None in values or value_conversion.LOST in values)
        if values is filled:
            return Column(cast("Values", cells), gaps)
        following = iter(values)
        values = [None if cell is None else next(following) for cell in cells] if gaps else values
        return Column(values, gaps)

    return converted


def _at_once(spec: field_specs.FieldSpec, conventions: Conventions) -> AtOnce | None:
    plain = KIND_RULES[spec.kind].plain
    if plain is not None:
        return lambda types, cells: cells if types <= {str} and plain.takes(cells) else None
    if spec.kind in field_specs.NUMERIC_KINDS and not spec.settings.keys() & {
        "min",
        "max",
        "precision",
    }:
        return lambda types, cells: _numbers(types, cells, conventions)
    if spec.kind is field_specs.FieldKind.CHECKBOX:
        return lambda types, cells: cells if types <= {bool} else None
    if spec.kind is field_specs.FieldKind.DATE:
        return lambda types, cells: [*map(date.isoformat, cells)] if types <= {date} else None
    return None


def _numbers(types: Set[type], cells: Sequence[Any], conventions: Conventions) -> Values | None:
    """Numbers, the whole ones as integers."""
    if types == {str}:
        if conventions.decimal_separator != "." or not all(map(_NUMBER_TEXT.fullmatch, cells)):
            return None
        cells, types = [*map(float, cells)], {float}
    # Infinity, and what is no number, are in no sum below this.
    if not types <= {int, float} or not sum(map(abs, cells)) < EXACT:
        return None
    if types <= {int}:
        return cells
    return [int(each) if type(each) is float and each.is_integer() else each for each in cells]


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column, by its place in the rows, and the field it fills; without a place it is empty."""

    place: int | None
    spec: field_specs.FieldSpec


@dataclass(slots=True)
class ConvertedRow:
    """The content a row has for a record.

    `lost_columns` are the columns, by their place in the mapping, whose cell has no form in its
    field; `missing` are columns whose value the row needs: it is required, or is a key that is
    lost, or the first of its keys, which are all empty. A row that is `skipped` makes no record.
    """

    title: str
    data: dict[str, Any] = field(default_factory=dict)
    lost_columns: Sequence[int] = ()
    missing: Sequence[int] = ()
    skipped: bool = False


class RowConversion:
    """The rows of one table as values of one database."""

    def __init__(
        self,
        columns: Sequence[MappedColumn],
        conventions: Conventions,
        row_keys: Collection[str] = (),
    ) -> None:
        """`row_keys` are the fields that identify a row: one without any of them is skipped."""
        self._row_keys = row_keys
        self._lacking = [
            at for at, one in enumerate(columns) if one.place is None and one.spec.required
        ]
        placed = [
            (at, one.place, one.spec) for at, one in enumerate(columns) if one.place is not None
        ]
        self._growing = {
            spec.key: GrowingField(spec, uuid4) for _, _, spec in placed if may_grow(spec)
        }
        self._keys = [spec.key for _, _, spec in placed]
        self._fields = [(at, spec.key, spec.required) for at, _, spec in placed]
        self._key_places = [at for at, _, spec in placed if spec.key in row_keys]
        self._columns = []
        for _, place, spec in placed:
            grown = self._growing.get(spec.key)
            convert = converter(spec, conventions) if grown is None else growing(grown)
            convert_column = column_converter(spec, conventions, convert)
            self._columns.append((place, convert_column))

    @property
    def grows(self) -> bool:
        """True when earlier rows decide what later ones mean."""
        return bool(self._growing)

    def grown(self) -> Mapping[str, Sequence[field_specs.Option]]:
        """The options that rows brought into being, by the key of their field."""
        return {
            key: [option for option in field.spec.options if option not in field.before]
            for key, field in self._growing.items()
        }

    def convert(self, row: Sequence[Cell]) -> ConvertedRow:
        """The values of a row, as `convert_rows` gives them."""
        return self.convert_rows([row])[0]

    def convert_rows(self, rows: Sequence[Sequence[Cell]]) -> list[ConvertedRow]:
        """The values of each row; one that is empty, or lacks what is required, is skipped.

        So is a row whose key has no form in its field, or whose keys are all empty: the record it
        means is unknown.
        """
        cells = [*zip(*rows, strict=True)]
        columns = [convert(cells[place]) for place, convert in self._columns]
        whole = not any(column.gaps for column in columns)
        keys, lacking, results = self._keys, self._lacking, []
        for values in zip(*(column.values for column in columns), strict=True):
            if whole or (None not in values and value_conversion.LOST not in values):
                data = dict(zip(keys, values, strict=True))
                title = data.pop(field_specs.TITLE_KEY, "")
                results.append(ConvertedRow(title, data, (), lacking, bool(lacking)))
            else:
                results.append(self._with_gaps(values))
        return results

    def _with_gaps(self, values: Sequence[Any]) -> ConvertedRow:
        """A row some of whose values are missing, or lost."""
        data: dict[str, Any] = {}
        lost_columns, missing = [], [*self._lacking]
        for (at, key, required), value in zip(self._fields, values, strict=True):
            if value is not None and value is not value_conversion.LOST:
                data[key] = value
                continue
            if value is value_conversion.LOST:
                lost_columns.append(at)
            if required or (value is value_conversion.LOST and key in self._row_keys):
                missing.append(at)
        if self._key_places and data and not missing and data.keys().isdisjoint(self._row_keys):
            missing.append(self._key_places[0])
        skipped = bool(missing) or not data
        return ConvertedRow(
            data.pop(field_specs.TITLE_KEY, ""), data, lost_columns, missing, skipped
        )


STAGED_COLUMNS = ("run_id", "position", "row_number", "identity", "digest", "title", "data")
_BIGINT, _SHA256 = copy_format.LENGTH.pack(8), copy_format.LENGTH.pack(32)


class Lines(Protocol):
    """The form of the lines that rows are copied as.

    `keys` are the fields that identify a row; without any, all its values do.
    """

    @property
    def keys(self) -> Sequence[str]: ...

    def line(self, position: int, number: int, row: ConvertedRow) -> bytes:
        """The line of the row at a position, which counts from 0; its file counts it so."""


@dataclass(frozen=True, slots=True)
class RecordLines:
    """Rows as records of a new database. `lead` is what all have, `first` the id of the first."""

    lead: bytes
    first: int
    keys: Sequence[str] = ()

    def line(self, position: int, number: int, row: ConvertedRow) -> bytes:
        """A record; it sorts by the position of its row."""
        del number
        return copied_record(self.lead, self.first + position, row.title, to_json(row.data))


class StagedLines:
    """Rows of a run as they are staged.

    The fields `unfilled` have no column, and had one: once they have one again, an empty cell says
    more than it does now.
    """

    def __init__(self, run_id: Id, keys: Sequence[str] = (), unfilled: Sequence[str] = ()) -> None:
        self._lead = copy_format.columns(len(STAGED_COLUMNS)) + copy_format.value(run_id) + _BIGINT
        self.keys = keys
        self._unfilled = to_json(sorted(unfilled)) if unfilled else b""

    def line(self, position: int, number: int, row: ConvertedRow) -> bytes:
        """A staged row: position, row of the file, identity, digest, title, values."""
        values, title = to_json(row.data), row.title.encode()
        said = to_json(row.title) + values
        digest = hashlib.sha256(said + self._unfilled).digest()
        identity = self._identity(row) if self.keys else digest
        if self._unfilled and not self.keys:
            identity = hashlib.sha256(said).digest()
        parts = (
            self._lead,
            position.to_bytes(8),
            _BIGINT,
            number.to_bytes(8),
            _SHA256,
            identity,
            _SHA256,
            digest,
            copy_format.LENGTH.pack(len(title)),
            title,
            copy_format.LENGTH_OF_JSON.pack(len(values) + 1, 1),
            values,
        )
        return b"".join(parts)

    def _identity(self, row: ConvertedRow) -> bytes:
        """The digest of the keys: `é` is the same as one sign and as two (Unicode, 3.7)."""
        values: list[Any] = [
            row.title if key == field_specs.TITLE_KEY else row.data.get(key) for key in self.keys
        ]
        written = to_json(values)
        if not written.isascii():
            written = unicodedata.normalize("NFC", written.decode()).encode()
        return hashlib.sha256(written).digest()
