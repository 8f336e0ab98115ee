"""The cells of an export. Pure."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

from models.core.filters.grammar import ValueForm
from models.core.values import moment
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, FieldValue
from models.data.fields.rules.value_conversion import place_text
from models.data.fields.rules.values import value_form
from models.data.records.shapes import RecordDetail

MAX_RECORDS = 1_000_000
"""Records of one export, as many as a sheet holds (interface.md#limits)."""
MAX_SHEET_CELLS = 5_000_000
"""Cells of one sheet; writing as many takes minutes."""
LONG = 10**15
"""The least whole number of more digits than a sheet keeps."""
MAX_CELL = 32_767
"""Characters of one cell of a sheet."""

_MILLIS = "milliseconds"

Cell = str | int | float | bool | None

_FORMULA_SIGNS = frozenset("=+-@\u2212")
"""Characters that begin a formula in a spreadsheet (OWASP, CSV Injection), by their plain form."""
_MARK = "'"
_MARKS_OF_QUOTED = {0: 2, 1: 1}
"""The apostrophes that an export writes before a formula which ends with one, by those it has.

Other programs write `'-'` and mean it: two apostrophes mark such a formula, one is its text.
"""
_TEXT_OF_QUOTED = {marks: had for had, marks in _MARKS_OF_QUOTED.items()}
_BREAKS = re.compile("[\t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
"""Characters that may begin another cell or line, for not every reader minds quotation marks."""
_ITEM = re.compile(r"[+-]\s")
"""An item of a list, as people write one."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
"""Characters without a look of their own that Unicode counts among letters, marks and symbols."""
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not allow (XML 1.0, 2.2)."""


@dataclass(frozen=True, slots=True)
class Legend:
    """The text of ids and moments: names of people and files by id, and a time zone."""

    names: Mapping[str, str]
    zone: ZoneInfo


def columns(fields: FieldSpecs) -> list[FieldSpec]:
    """The fields that have a value to show, in order."""
    return [spec for spec in fields.values() if spec.kind is not FieldKind.BUTTON]


def named_ids(records: Sequence[RecordDetail], specs: Sequence[FieldSpec]) -> Iterator[str]:
    """The people and files that values name."""
    for spec in specs:
        form = value_form(spec)
        if form in {ValueForm.USER, ValueForm.USERS, ValueForm.FILES}:
            for record in records:
                value = _values(spec)(record).get(spec.key)
                yield from _listed(value) if value else ()


def rows_of(
    records: Sequence[RecordDetail], specs: Sequence[FieldSpec], legend: Legend
) -> list[list[Cell]]:
    columns = [_column(spec, legend) for spec in specs]
    return [[cell(record) for cell in columns] for record in records]


def _column(spec: FieldSpec, legend: Legend) -> Callable[[RecordDetail], Cell]:
    """The cell of a record in one column; made once, for exports have many records."""
    key = spec.key
    if spec.relation:
        return lambda record: _joined(each.title for each in record.related.get(key, ()))
    values, written = _values(spec), _writing(spec, legend)

    def cell(record: RecordDetail) -> Cell:
        value = values(record).get(key)
        return None if value is None else written(value)

    return cell


def _values(spec: FieldSpec) -> Callable[[RecordDetail], Mapping[str, FieldValue]]:
    """The part of a record that has the values of a field."""
    if spec.computed:
        return attrgetter("computed")
    return attrgetter("system" if spec.system else "data")


def cell_of(value: Any, spec: FieldSpec, legend: Legend) -> Cell:
    """A value of a field that is no relation as a cell."""
    return _writing(spec, legend)(value)


def _writing(spec: FieldSpec, legend: Legend) -> Callable[[Any], Cell]:
    match value_form(spec):
        case ValueForm.MOMENT:
            return lambda value: _local(moment(value), legend.zone).isoformat(timespec=_MILLIS)
        case ValueForm.OPTION | ValueForm.OPTIONS:
            return _choosing(spec)
        case ValueForm.USER | ValueForm.USERS | ValueForm.FILES:
            return _naming(legend.names)
        case ValueForm.VALUES:
            return lambda value: _joined(str(_plain(one)) for one in _listed(value))
        case ValueForm.NUMBER if spec.kind is FieldKind.TIMER:
            return lambda value: _plain(value.get("totalMs"))
        case ValueForm.OPAQUE if spec.kind is FieldKind.LOCATION:
            return place_text
        case ValueForm.OPAQUE if spec.kind is FieldKind.JSON:
            return _json
        case _:
            return _plain


def _local(at: datetime, zone: ZoneInfo) -> datetime:
    """A moment in a zone; in UTC where the calendar ends there, or RFC 3339 has no such offset."""
    try:
        local = at.astimezone(zone)
    except OverflowError:
        return at
    return at if (local.utcoffset() or timedelta()) % timedelta(minutes=1) else local


def _choosing(spec: FieldSpec) -> Callable[[Any], Cell]:
    """The names of options, on lines of their own where a comma would part them otherwise."""

    def choice(value: FieldValue) -> Cell:
        names = [spec.option_names.get(one, one) for one in _listed(value)]
        joined = _joined(names)
        is_clear = len(names) < 2 or spec.names_in(joined or "") == names
        return joined if is_clear else "\n".join(names)

    return choice


def _naming(names: Mapping[str, str]) -> Callable[[Any], Cell]:
    return lambda value: _joined(names.get(one, one) for one in _listed(value))


def _listed(value: FieldValue) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _joined(texts: Iterable[str]) -> str | None:
    return ", ".join(texts) or None


def _plain(value: FieldValue) -> Cell:
    """A scalar as it is, anything else as JSON."""
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json(value: FieldValue) -> Cell:
    """A value of JSON; a text is in quotation marks where it would be read as another value."""
    if isinstance(value, str) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else _plain(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return text != text.strip()
    return True


def csv_cell(cell: Cell) -> str:
    """A cell in CSV; text that a spreadsheet would read as a formula is led by an apostrophe."""
    if isinstance(cell, str):
        marks, text = _parted(cell)
        if not _begins_formula(text):
            return cell
        added = _MARKS_OF_QUOTED.get(marks, marks + 1) if text.endswith(_MARK) else marks + 1
        return _MARK * added + text
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    return "" if cell is None else repr(cell)


def csv_text(cell: str) -> str:
    """The text that a cell of CSV was written for: without the apostrophe that leads a formula.

    A cell such as `'-'` is in quotation marks of its file, and stays.
    """
    marks, text = _parted(cell)
    if not marks or not _begins_formula(text):
        return cell
    left = _TEXT_OF_QUOTED.get(marks, marks - 1) if text.endswith(_MARK) else marks - 1
    return _MARK * left + text


def _parted(cell: str) -> tuple[int, str]:
    """The number of apostrophes that lead a text, and what follows them."""
    text = cell.lstrip(_MARK)
    return len(cell) - len(text), text


def _begins_formula(text: str) -> bool:
    """Tell whether a part of a text begins with a formula's sign, or its first one is unseen."""
    first, *others = map(_seen, _BREAKS.split(text))
    if _is_sign(first) or (others and not first):
        return True
    return any(_is_sign(part) and not _ITEM.match(part) for part in others)


def _seen(text: str) -> str:
    """A text from its first character that is seen."""
    for place, character in enumerate(text):
        if not _is_unseen(character):
            return text[place:]
    return ""


def _is_sign(text: str) -> bool:
    return bool(text) and unicodedata.normalize("NFKC", text[0])[0] in _FORMULA_SIGNS


def _is_unseen(character: str) -> bool:
    """Recognize a blank, a control or a format character (Z and C of Unicode)."""
    return unicodedata.category(character)[0] in "ZC" or bool(_UNSEEN.match(character))


def is_number_of_a_sheet(cell: Cell) -> bool:
    """True for a number that a sheet keeps: of a whole one it has 15 digits, as spreadsheets do."""
    return not isinstance(cell, int) or abs(cell) < LONG or len(str(abs(cell)).rstrip("0")) <= 15


def sheet_text(text: str) -> str:
    """A text without what a cell of a sheet cannot hold."""
    return _NO_XML.sub("", text)[:MAX_CELL]
