"""JSON values as every resource reads them: text, numbers, days, moments, and revisions of rows.

A reader takes a JSON value and gives it typed. It raises `InvalidValueError` with the sentence that
follows the value's path. Nothing is coerced: a number in quotes is text.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from runtime.clock import truncate
from runtime.errors import ValidationError

T = TypeVar("T")

MAX_TEXT = 10_000
MAX_LONG_TEXT = 200_000
MAX_NUMBER = 1e100
EXACT = 2**53
"""The largest magnitude up to which a double holds every whole number."""
_HELD_DIGITS, _MOST_DIGITS = 17, 800
"""Significant digits that tell every double from the others; more than the longest one has."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)


class InvalidValueError(Exception):
    """A value that cannot be taken; the message continues a sentence that begins with where."""

    retryable = False


def children(value: object) -> Collection[Any]:
    """The values directly inside a JSON value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def is_blank(value: object) -> bool:
    """True for what leaves a question open; false and 0 are values."""
    return not value.strip() if isinstance(value, str) else value is None or value == []


def spellings(value: T) -> tuple[T | str, ...]:
    """A value as it is compared: a text as it came, composed, and decomposed (Unicode, 3.11)."""
    if not isinstance(value, str) or value.isascii():
        return (value,)
    composed, decomposed = unicodedata.normalize("NFC", value), unicodedata.normalize("NFD", value)
    return tuple(dict.fromkeys((value, composed, decomposed)))


def text(value: object, *, longest: int = MAX_TEXT) -> str:
    """Text that PostgreSQL can store: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str):
        raise InvalidValueError("must be text")
    if len(value) > longest:
        raise InvalidValueError(f"must be at most {longest} characters")
    if (not value.isascii() or "\x00" in value) and _UNSTORABLE.search(value):
        raise InvalidValueError("contains an invalid character (NUL or a lone surrogate)")
    return value


def storable_texts(texts: Sequence[str], longest: int) -> bool:
    """True when `text` takes each of these; they are looked at all at once."""
    joined = "".join(texts)
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in joined and max(map(len, texts), default=0) <= longest


def number(value: object) -> int | float:
    """A finite JSON number; `true` is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError("must be a number")
    if not abs(value) <= MAX_NUMBER:
        raise InvalidValueError("must be a finite number of at most 100 digits")
    return value


def exact_number(value: Decimal) -> int | float:
    """The number that has all these digits.

    A double holds a whole number when JSON writes it with the same digits: all up to 2^53 are, and
    1e30. It holds a fraction of up to 17 significant digits, and one of more if it has the same
    ones when it is written with as many.
    """
    nearest = float(value) if abs(value) <= MAX_NUMBER else math.inf
    if math.isinf(nearest):
        raise InvalidValueError("must be a finite number of at most 100 digits")
    if value == value.to_integral_value():
        if abs(value) < EXACT or value == Decimal(repr(nearest)):
            return int(value)
    elif nearest:
        significant = len(all_digits(value).replace(".", "").lstrip("-0"))
        if significant <= _HELD_DIGITS or (
            significant <= _MOST_DIGITS and Decimal(format(nearest, f".{significant}g")) == value
        ):
            return nearest
    raise InvalidValueError("has too many digits")


def all_digits(value: Decimal) -> str:
    """The number without an exponent, and without zeros that end its fraction."""
    written = format(value, "f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def whole_number(value: object, lowest: int, highest: int) -> int:
    """An integer between two bounds; `3.0` counts as one, as JSON has one kind of number."""
    checked = number(value)
    if checked != int(checked) or not lowest <= checked <= highest:
        raise InvalidValueError(f"must be a whole number from {lowest} to {highest}")
    return int(checked)


def day(value: object) -> date:
    """A calendar day written `YYYY-MM-DD`."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise InvalidValueError("must be a date such as 2026-01-31")


def moment(value: object) -> datetime:
    """A point in time with its offset from UTC (RFC 3339)."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise InvalidValueError("must be a date and time with an offset, such as 2026-01-31T09:00:00Z")


def stored_moment(value: datetime) -> str:
    """UTC with milliseconds in a fixed width, so that the order of texts is that of moments."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def check_storable(value: object, depth: int) -> None:
    """Refuse what JSONB cannot hold, or what is nested more than `depth` deep."""
    if depth < 0:
        raise InvalidValueError("is nested too deeply")
    if isinstance(value, dict):
        for key, entry in value.items():
            text(key, longest=MAX_TEXT)
            check_storable(entry, depth - 1)
    elif isinstance(value, list):
        for entry in value:
            check_storable(entry, depth - 1)
    elif isinstance(value, str):
        text(value, longest=MAX_LONG_TEXT)
    elif isinstance(value, bool) or value is None:
        return
    else:
        number(value)


def same_json(first: object, second: object) -> bool:
    """True when two JSON values are equal: 5 and 5.0 are, 1 and true are not.

    Numbers are compared as PostgreSQL does, by their decimal digits.
    """
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            same_json(item, second[key]) for key, item in first.items()
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_json, first, second))
    if {type(first), type(second)} == {int, float}:
        return Decimal(repr(first)) == Decimal(repr(second))
    return bool(first == second)


def _moment(value: object) -> datetime | None:
    try:
        return None if value is None else truncate(moment(value))
    except InvalidValueError as problem:
        raise ValueError(str(problem)) from problem


InputMoment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A date and time with its offset from UTC (RFC 3339)."""

MomentText = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""The same as text, which the command reads."""


_NO_ZONES = re.compile(r"localtime|posixrules|Factory|(posix|right)/.*", re.DOTALL)
"""Names that systems keep beside the database: not on every machine, and not the same on each."""


@lru_cache(maxsize=1_024)
def is_timezone(name: str) -> bool:
    """True when `name` is a zone of the IANA database, such as Europe/Berlin."""
    if len(name) > 64 or _NO_ZONES.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # KeyError: unknown; ValueError: not a key; OSError: a directory such as "Europe".
        return False
    return True


def _known_timezone(name: str) -> str:
    if not is_timezone(name):
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return name


Timezone = Annotated[str, AfterValidator(_known_timezone)]
"""The name of a zone of the IANA database."""


def next_updated_at(updated_at: sa.ColumnElement[Any], now: datetime) -> sa.ColumnElement[datetime]:
    """Now, or one millisecond after the last change if that is later: it never repeats."""
    return sa.func.greatest(
        sa.literal(now, updated_at.type), updated_at + timedelta(milliseconds=1)
    )


_VERSION = re.compile(r'"?([1-9][0-9]{0,8})"?')


def read_if_match(header: str | None) -> datetime | None:
    """The `updatedAt` a client last read, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    return read_moment(header.strip().strip('"'), "If-Match")


def read_moment(text: str | None, path: str) -> datetime | None:
    """The `updatedAt` a client last read, None without one. Raises `ValidationError` at `path`."""
    if text is None:
        return None
    try:
        return truncate(moment(text))
    except InvalidValueError as problem:
        raise ValidationError.at(path, "must be the last updatedAt that you read") from problem


def expected_version(header: str | None) -> int | None:
    """The version `If-Match` names, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    match = _VERSION.fullmatch(header.strip())
    if match is None:
        raise ValidationError.at("If-Match", "must be the last version that you read")
    return int(match[1])
