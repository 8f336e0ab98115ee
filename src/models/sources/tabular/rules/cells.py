"""One cell of a foreign row, the same for every format of file."""

from datetime import date, datetime, time, timedelta
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


Typed: TypeAlias = (
    bool | int | float | date | datetime | time | timedelta | list[Any] | dict[str, Any]
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


def with_zeros(value: float, digits: int) -> str | int | float:
    """A number that its file shows with leading zeros, as it is shown; one with decimals as it is.

    What is written so is a code: 00123 and 123 are not the same.
    """
    whole = number(float(value))
    return f"{whole:0{digits + (whole < 0)}}" if isinstance(whole, int) else whole


def shown_cell(value: Cell) -> JsonValue:
    """The cell as JSON: days, moments and times by ISO 8601, a duration in milliseconds."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    return value


def storable(value: Cell) -> Cell:
    """The cell as a row can be kept: text with a NUL, wherever it stands, is no text (PostgreSQL).

    What is lost so is empty; converting the row counts it.
    """
    if isinstance(value, str):
        return None if "\x00" in value else value
    if isinstance(value, list | dict):
        return None if b"\\u0000" in to_json(value) else value
    return value
