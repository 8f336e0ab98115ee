"""Between Python and the values CEL can read and JSON can hold."""

import base64
import math
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic import JsonValue

from models.core.expressions.rules.errors import ExpressionError, ExpressionLimitError
from models.core.values import InvalidValueError, all_digits, exact_number

MAX_DEPTH = 100
"""Levels of nesting; bodies are refused at 64 already (architecture.md#bounds)."""

MAX_RESULT_SIZE = 8 * 1024 * 1024
"""Characters of one result, each of its values counted as `VALUE_SIZE` more."""

VALUE_SIZE = 32

_INT64 = 2**63
_PLAIN = frozenset({str, bool, float, type(None)})


def readable(value: object, depth: int = 0) -> Any:
    """A value as CEL reads it: plain JSON, integers beyond 64 bits as doubles with their digits.

    One that no double is written like is the text of its digits. CEL turns a datetime, Decimal,
    UUID or tuple anywhere in a variable into an error.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else _double(Decimal(value))
    if depth >= MAX_DEPTH:
        raise ExpressionError(f"The data is nested deeper than {MAX_DEPTH} levels.")
    if isinstance(value, Mapping):
        return {
            str(key): item if type(item) in _PLAIN else readable(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [item if type(item) in _PLAIN else readable(item, depth + 1) for item in value]
    return _scalar(value)


def _double(value: Decimal) -> float | str:
    """The double that is written like the number; otherwise the text of its digits."""
    try:
        return float(exact_number(value))
    except InvalidValueError:
        return all_digits(value)


def _scalar(value: object) -> str | int | float:
    if isinstance(value, str | float):
        return value
    if isinstance(value, datetime):
        return iso_timestamp(value)
    if isinstance(value, Decimal):
        return _double(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, timedelta):
        return seconds(value)
    raise ExpressionError(
        f"The data has a value of the type {type(value).__name__}, which is not valid JSON."
    )


class ResultReader:
    """Turns one CEL result into plain JSON, and refuses a result that is too large.

    What `opened` gives of a value holds the parts of a list or map unopened, so that no more is
    built than is counted.
    """

    def __init__(self, opened: Callable[[Any], Any] = lambda value: value) -> None:
        self._opened = opened
        self._size = 0

    def read(self, value: object, depth: int = 0) -> JsonValue:
        """The JSON value: timestamps as ISO text, durations in seconds, bytes in base64.

        Raises ExpressionError for what JSON cannot hold (NaN, infinity, NUL) and beyond the size.
        """
        self._grow(VALUE_SIZE)
        value = self._opened(value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool | int) or value is None:
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ExpressionError("The result is not a valid JSON number.")
            return value
        if depth >= MAX_DEPTH:
            raise ExpressionError(f"The result is nested deeper than {MAX_DEPTH} levels.")
        if isinstance(value, list):
            return [self.read(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {self._key(key): self.read(item, depth + 1) for key, item in value.items()}
        return self._special(value)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_RESULT_SIZE:
            raise ExpressionLimitError("The result is too large. Select less data.")

    def _text(self, value: str) -> str:
        self._grow(len(value))
        if "\x00" in value:
            raise ExpressionError("The result has a NUL character, which cannot be stored.")
        return value

    def _key(self, key: object) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        return self._text(str(key))

    def _special(self, value: object) -> JsonValue:
        if isinstance(value, datetime):
            return iso_timestamp(value)
        if isinstance(value, timedelta):
            return seconds(value)
        if isinstance(value, bytes | bytearray):
            return self._text(base64.b64encode(value).decode())
        raise ExpressionError("The result is a type, not a value.")


def iso_timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds (interface.md#timestamps); naive means UTC."""
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(duration: timedelta) -> int | float:
    """Seconds, whole ones as an integer."""
    total = duration.total_seconds()
    return int(total) if total.is_integer() else total
