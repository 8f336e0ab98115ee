"""One cell of a foreign row, the same for every format of file; numbers of days in workbooks.

Calamine reads serial dates after February 1900. The others are read here, by what the format of
their cell shows: the days around the 29th of February 1900, which no calendar has, hours beyond a
day, numbers below 0, and formats of eras and weekdays.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import Any, Self, TypeAlias

from pydantic import JsonValue
from pydantic_core import to_json

from models.core.values import EXACT


class Percent(float):
    """A number that its file shows as a percentage: 0.5 as 50 %."""

    __slots__ = ()


class Amount(float):
    """A number that its file shows with a currency: its code or sign, empty for none."""

    __slots__ = ("currency",)
    currency: str

    def __new__(cls, number: float | str, currency: str = "") -> Self:
        amount = super().__new__(cls, number)
        amount.currency = currency
        return amount


class MarkedText(str):
    """A text that its file marks as one: digits in it are no number."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ErrorCell:
    """A cell that has an error, such as `#DIV/0!`, in place of a value."""

    text: str


Typed: TypeAlias = (
    bool | int | float | date | datetime | time | timedelta | list[Any] | dict[str, Any] | ErrorCell
)
"""A cell that its file has typed."""
Cell: TypeAlias = str | Typed | None
"""None is an empty cell. Days and moments are typed only where the file types them."""

LONG = 10**15
"""The least whole number that some readers of numbers round: it has more than 15 digits."""


def cell(value: object) -> Cell:
    """The cell a reader found, in the one form that all readers share.

    Workbooks know one kind of number, so a whole one is an integer; a moment at midnight is a day;
    text of white space alone is empty. An integer of more than 15 digits is the text of them, as in
    CSV: most are identifiers, and few numbers hold them. A number too large to be one stays
    infinite, for conversion to count it as lost.
    """
    if type(value) is int:
        return value if -LONG < value < LONG else str(value)
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    # Not a percentage or an amount, which are floats of their own.
    if type(value) is float:
        return number(value)
    if isinstance(value, datetime):
        midnight = value.tzinfo is None and value.time() == time()
        return value.date() if midnight else value
    if isinstance(value, list | dict):
        return value or None
    return value  # type: ignore[return-value]  # the other types are cells already


def number(value: float) -> int | float:
    """A number as a cell: an integer where it is whole."""
    return int(value) if value.is_integer() and abs(value) < EXACT else value


_UNIT = re.compile(r"[^-./|()\x20]")
"""A sign behind a digit with which a number is a quantity, and no code."""


@dataclass(frozen=True, slots=True)
class CodeFormat:
    """A format by which whole numbers are codes: leading zeros, and signs between the digits.

    Each sign stands before a digit, the last one behind all of them.
    """

    signs: tuple[str, ...]

    @classmethod
    def of_signs(cls, signs: Sequence[str]) -> Self | None:
        """The format with these signs; None for one of a single digit, or with a unit."""
        has_unit = any(map(_UNIT.search, signs[1:]))
        return cls(tuple(signs)) if len(signs) > 2 and not has_unit else None

    def shown(self, value: float) -> str | int | float:
        """A number as it is shown; one with decimals as it is.

        A code is no number: 00123 and 123 are not the same.
        """
        integer = number(float(value))
        if not isinstance(integer, int):
            return integer
        return self.shown_digits(str(integer))

    def shown_digits(self, integer: str) -> str:
        """A whole number, in digits, as it is shown."""
        first, *others, last = self.signs
        digits = integer.removeprefix("-").zfill(len(others) + 1)
        more = len(digits) - len(others)
        pairs = zip(others, digits[more:], strict=True)
        shown = first + digits[:more] + "".join(sign + digit for sign, digit in pairs) + last
        return f"-{shown}" if integer.startswith("-") else shown


def shown_cell(value: Cell) -> JsonValue:
    """The cell as JSON: days, moments and times by ISO 8601, a duration in milliseconds.

    An error is its text.
    """
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    return value.text if isinstance(value, ErrorCell) else value


def storable(value: Cell) -> Cell:
    """The cell as a row can be kept: text with a NUL, wherever it stands, is no text (PostgreSQL).

    What is lost so is empty; converting the row counts it.
    """
    if isinstance(value, str):
        return None if "\x00" in value else value
    if isinstance(value, list | dict):
        return None if b"\\u0000" in to_json(value) else value
    return value


_QUIET = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]|am/pm|a/p|general')
_FRACTION = re.compile(r"(?<=s)[.,]0+")
_DIGIT = re.compile(r"[0#?]")
_SPAN = re.compile(r"\[(?:h+|m+|s+)\]")
_DAYS = re.compile(r"[ydge]|aaa|bb|mmm")
_TIMES = re.compile(r"[hs]")
_KNOWN = re.compile(r"[ymdhs]")

_MIDNIGHT = time()
_DAY = timedelta(days=1)
_LEAP = 60
"""The serial number of the 29th of February 1900, kept for the sake of Lotus 1-2-3."""
_FIRST_YEAR = 367
"""The serial number of the first day of 1901; a number below it, shown as a time, is a span."""


class Shown(Enum):
    """The parts of a number of days that a format shows."""

    DAY = "day"
    MOMENT = "moment"
    TIME = "time"
    SPAN = "span"


def shown_by(code: str) -> Shown | None:
    """The parts that a number format shows; None for one that shows numbers or text."""
    plain = _FRACTION.sub("", _QUIET.sub("", code.lower()).partition(";")[0])
    if _SPAN.search(plain):
        return Shown.SPAN
    if _DIGIT.search(plain) or "@" in plain:
        return None
    if _TIMES.search(plain):
        return Shown.MOMENT if _DAYS.search(plain) else Shown.TIME
    return Shown.DAY if _DAYS.search(plain) or "m" in plain else None


def is_unusual(code: str) -> bool:
    """True for a format that calamine reads as one of a number, or without parts of a second."""
    plain = _QUIET.sub("", code.lower())
    return _KNOWN.search(plain) is None or _FRACTION.search(plain) is not None


def is_odd(value: float, form: Shown, since_1904: bool) -> bool:
    """True for a number of days that calamine reads as another one, or as a time of no day."""
    if form is Shown.SPAN:
        return False
    if value < 0:
        return True
    if form is Shown.TIME:
        return 1 <= value < _FIRST_YEAR
    return value < 1 if since_1904 else value == 0 or _LEAP <= value < _LEAP + 1


def serial(value: float, form: Shown, since_1904: bool) -> Cell:
    """The day, moment, time or span that a number of days is, in milliseconds.

    What is no day stays a number, or is the text that Excel shows: `1900-02-29`, `1900-01-00`.
    """
    try:
        span = timedelta(milliseconds=round(value * (_DAY / timedelta(milliseconds=1))))
        if form is Shown.SPAN or (form is Shown.TIME and is_odd(value, form, since_1904)):
            return span
        if value < 0:
            return number(value)
        if since_1904:
            is_time = form is Shown.TIME and span < _DAY
            return _of_day(date(1904, 1, 1), span, is_time=is_time)
        if value == 0 and form is Shown.DAY:
            return "1900-01-00"
        if span < _DAY:
            return _of_day(date.min, span, is_time=True)
        if _LEAP <= span // _DAY < _LEAP + 1:
            at = _of_day(date.min, span % _DAY, is_time=True)
            return "1900-02-29" if at == _MIDNIGHT else f"1900-02-29T{at}"
        return _of_day(date(1899, 12, 31 if span // _DAY < _LEAP else 30), span)
    except OverflowError:
        return number(value)


def _of_day(first: date, span: timedelta, *, is_time: bool = False) -> Cell:
    """A time of day, or a moment so long after the beginning of a first day."""
    moment = datetime.combine(first, _MIDNIGHT) + span
    if is_time:
        return moment.time()
    return moment.date() if moment.time() == _MIDNIGHT else moment
