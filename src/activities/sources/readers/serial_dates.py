"""Days, times and spans that a workbook keeps as numbers of days (ECMA-376-1, 18.17.4).

Calamine reads those after February 1900. The others are read here, by what the format of their cell
shows: the days around the 29th of February 1900, which no calendar has, hours beyond a day, numbers
below 0, and formats of eras and weekdays.
"""

import re
from datetime import date, datetime, time, timedelta
from enum import Enum

from models.sources.tabular.rules.cells import Cell, number

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
    """True for the format of a day that calamine reads as one of a number."""
    return _KNOWN.search(_QUIET.sub("", code.lower())) is None


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
