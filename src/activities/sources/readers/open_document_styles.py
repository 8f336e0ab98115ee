"""The names, styles and types of OpenDocument, and what they say of the values of cells."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from typing import TypeAlias
from xml.parsers.expat import XMLParserType

from activities.sources.readers.workbook_digits import long_digits
from models.sources.tabular.rules.cells import Amount, Cell, Percent, with_zeros

URN = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TABLE, TEXT = f"{URN}office:1.0 ", f"{URN}table:1.0 ", f"{URN}text:1.0 "
STYLE, NUMBER = f"{URN}style:1.0 ", f"{URN}datastyle:1.0 "
CALC = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 "
VALUE = f"{OFFICE}value"
NO_TEXT = frozenset(
    {
        f"{OFFICE}annotation",
        f"{OFFICE}annotation-end",
        f"{OFFICE}forms",
        f"{TABLE}shapes",
        f"{TABLE}tracked-changes",
        f"{TABLE}dde-links",
        f"{TABLE}detective",
        f"{TEXT}note",
        f"{TEXT}ruby-text",
        f"{TEXT}tracked-changes",
    }
)
"""Elements whose text is none of a cell; drawings are others."""
DRAWN = (f"{URN}drawing:1.0 ", f"{URN}dr3d:1.0 ")
_SPAN = re.compile(
    r"(-)?P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?"
    r"(?:([0-9]{1,12}(?:[.][0-9]{1,20})?)S)?)?"
)
_DAY = timedelta(days=1)
NO_VALUE = (KeyError, ValueError, OverflowError)
"""The errors of a value that is none of its type."""
_MIDNIGHT = datetime.combine(date(1900, 1, 1), time())
_Meaning: TypeAlias = Callable[[Mapping[str, str]], int | None]
_SPANS_TIME = 0
"""The meaning of a style that shows hours beyond a day; any other is a number of digits."""


class Styles:
    """The styles of a part: how a cell shows its value, where the type does not tell.

    `meanings` begins with the meanings of the styles that this part builds upon.
    """

    def __init__(self, known: Mapping[str, int]) -> None:
        self.meanings = dict(known)
        self.hidden: set[str] = set()
        """The names of the styles of sheets that are not shown."""
        self._formats: dict[str, int | None] = {}
        self._format: str | None = None
        self._style = ""

    def listen(self, parser: XMLParserType) -> None:
        parser.StartElementHandler = self.start

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Learn from the element of a style; of no other."""
        read = _STYLE_READERS.get(name)
        if read is not None:
            read(self, attributes)

    def time_style(self, attributes: Mapping[str, str]) -> None:
        self._format = None
        if attributes.get(f"{NUMBER}truncate-on-overflow") == "false":
            self._formats[attributes.get(f"{STYLE}name", "")] = _SPANS_TIME

    def number_style(self, attributes: Mapping[str, str]) -> None:
        self._format = attributes.get(f"{STYLE}name", "")

    def number(self, attributes: Mapping[str, str]) -> None:
        """The digits of a format such as `00000`; one that shows more than digits has none."""
        if self._format is not None:
            digits = int(attributes.get(f"{NUMBER}min-integer-digits", "1"))
            plain = attributes.get(f"{NUMBER}decimal-places", "0") == "0"
            plain = plain and attributes.get(f"{NUMBER}grouping", "false") == "false"
            first = self._format not in self._formats
            self._formats[self._format] = digits if plain and first and digits > 1 else None

    def other(self, _attributes: Mapping[str, str]) -> None:
        """Text beside the digits of a number, or a condition."""
        if self._format is not None:
            self._formats[self._format] = None

    def style(self, attributes: Mapping[str, str]) -> None:
        self._style = attributes.get(f"{STYLE}name", "")
        self._format = None
        if attributes.get(f"{STYLE}family") != "table-cell":
            return
        data = attributes.get(f"{STYLE}data-style-name")
        parent = attributes.get(f"{STYLE}parent-style-name", "")
        meaning = self.meanings.get(parent) if data is None else self._formats.get(data)
        self.meanings.pop(self._style, None)
        if meaning is not None:
            self.meanings[self._style] = meaning

    def table_properties(self, attributes: Mapping[str, str]) -> None:
        if attributes.get(f"{TABLE}display") == "false":
            self.hidden.add(self._style)


_STYLE_READERS: Mapping[str, Callable[[Styles, Mapping[str, str]], None]] = {
    f"{NUMBER}time-style": Styles.time_style,
    f"{NUMBER}number-style": Styles.number_style,
    f"{NUMBER}number": Styles.number,
    f"{NUMBER}text": Styles.other,
    f"{STYLE}map": Styles.other,
    f"{STYLE}style": Styles.style,
    f"{STYLE}table-properties": Styles.table_properties,
}


def repeats(attributes: Mapping[str, str], name: str) -> int:
    """The number of times that a row, a column or a cell is repeated."""
    return max(int(attributes.get(name, "1")), 1)


def _number(attributes: Mapping[str, str], meaning: _Meaning) -> Cell:
    """A number; as text where its format shows leading zeros, or no double holds its digits."""
    written = attributes[VALUE]
    digits = meaning(attributes) or 0
    whole = long_digits(written)
    if whole is not None:
        return whole.zfill(digits)
    value = float(written)
    return with_zeros(value, digits) if digits else value


def _date(attributes: Mapping[str, str], _meaning: object) -> Cell:
    written = attributes[f"{OFFICE}date-value"]
    if "T" not in written:
        return date.fromisoformat(written)
    moment = datetime.fromisoformat(written)
    return moment.replace(microsecond=0) + timedelta(milliseconds=round(moment.microsecond / 1_000))


def _time(attributes: Mapping[str, str], meaning: _Meaning) -> Cell:
    """A time of day; a span where it passes a day, or where its style shows spans."""
    found = _SPAN.fullmatch(attributes[f"{OFFICE}time-value"])
    if found is None or found[0].endswith(("P", "T")):
        raise ValueError(found)
    sign, days, hours, minutes, seconds = found.groups()
    span = timedelta(int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0))
    span += timedelta(milliseconds=round(float(seconds or 0) * 1_000))
    if sign or span >= _DAY or meaning(attributes) == _SPANS_TIME:
        return -span if sign else span
    return (_MIDNIGHT + span).time()


def _truth(attributes: Mapping[str, str], _meaning: object) -> Cell:
    return attributes[f"{OFFICE}boolean-value"] == "true"


READERS: Mapping[str, Callable[[Mapping[str, str], _Meaning], Cell]] = {
    "float": _number,
    "percentage": lambda attributes, _: Percent(attributes[VALUE]),
    "currency": lambda attributes, _: Amount(attributes[VALUE]),
    "date": _date,
    "time": _time,
    "boolean": _truth,
}
