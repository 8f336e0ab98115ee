"""Numbers, durations, days and yes or no as people write them, read only when unambiguous."""

import re
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext

from models.core.values import InvalidValueError, all_digits, day, number

_PLAIN = re.compile(r"[+-]?([0-9]{1,100}([.][0-9]{1,100})?|[.][0-9]{1,100})([eE][+-]?[0-9]{1,3})?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}((,[0-9]{3}){2,30}|(,[0-9]{3}){1,30}[.][0-9]{1,100})")


def digits(value: object) -> str:
    """A number without an exponent."""
    return all_digits(Decimal(repr(number(value))))


def rounded(value: object, decimals: int) -> str:
    """A number with so many decimals; a half goes away from zero, as people round."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(repr(number(value))), f".{decimals}f")


def read_number(text: str, units: str) -> Decimal:
    """A number with none or one of the characters of `units` around it.

    `1,234.5` is unambiguous; `1,234` is refused: some read it as 1234, others as 1.234.
    """
    stripped = text.strip().strip(units).strip()
    if _PLAIN.fullmatch(stripped):
        return Decimal(stripped)
    if _GROUPED.fullmatch(stripped):
        return Decimal(stripped.replace(",", ""))
    raise InvalidValueError("is no number")


_CLOCK = re.compile(r"([0-9]{1,10}):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{3}))?)?")


def clock(value: object) -> str:
    """Milliseconds as `H:MM:SS`, with a fraction where there is one."""
    if not isinstance(value, int):
        raise InvalidValueError("is no duration")
    seconds, milliseconds = divmod(value, 1000)
    shown = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{milliseconds:03}" if milliseconds else shown


def read_clock(text: str) -> int | None:
    """The milliseconds of `H:MM`, `H:MM:SS` or `H:MM:SS.mmm`; None for any other text."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_yes_or_no(text: str) -> bool:
    """True when a text says yes."""
    word = text.strip().lower()
    if word not in _WORDS:
        raise InvalidValueError("is neither yes nor no")
    return _WORDS[word]


_YEAR_FIRST = re.compile(r"([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})")
_DAY_FIRST = re.compile(r"([0-9]{1,2})[.]([0-9]{1,2})[.]([0-9]{4})")


def read_day(text: str) -> date:
    """A day as `2026-01-31`, `2026/1/31` or `31.1.2026`; `1/2/2026` is ambiguous and refused."""
    if found := _YEAR_FIRST.fullmatch(text):
        parts = found.groups()
    elif found := _DAY_FIRST.fullmatch(text):
        parts = found.groups()[::-1]
    else:
        return day(text)
    try:
        return date(*map(int, parts))
    except ValueError as error:
        raise InvalidValueError("is no day") from error
