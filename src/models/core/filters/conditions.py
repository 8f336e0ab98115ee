"""The conditions a filter puts on a value, and the operand forms several operators share.

Five are enough: membership, a range, a piece of text, elements of a list, emptiness.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from models.core.values import InvalidValueError

Scalar = str | bool | Decimal | datetime


@dataclass(frozen=True, slots=True)
class In:
    """The value is one of these."""

    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The value lies between two bounds, of which either may be missing."""

    low: Scalar | None = None
    high: Scalar | None = None
    with_low: bool = True
    with_high: bool = True


class Anchor(StrEnum):
    ANYWHERE = "anywhere"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Substring:
    """The text contains another, whatever the case of its letters."""

    text: str
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Has:
    """The list has any, or every one, of these elements."""

    elements: tuple[Any, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Empty:
    """There is nothing: no value, an empty text, an empty list or an empty object."""


Condition = In | Range | Substring | Has | Empty


def list_of(operand: object) -> list[Any]:
    """The values of a list. Raises `InvalidValueError`."""
    if not isinstance(operand, list):
        raise InvalidValueError("must be a list of values")
    return operand


def pair_of(operand: object) -> tuple[Any, Any]:
    """The two ends of a range. Raises `InvalidValueError`."""
    if not isinstance(operand, list) or len(operand) != 2:
        raise InvalidValueError("must be a list of two values, the lower one first")
    return operand[0], operand[1]


def ordered(span: Range) -> Range:
    """The range, when its lower end is not the higher one. Raises `InvalidValueError`."""
    if span.low is not None and span.high is not None and span.low > span.high:  # type: ignore[operator]  # both were read by one reader
        raise InvalidValueError("must be a list of two values, the lower one first")
    return span
