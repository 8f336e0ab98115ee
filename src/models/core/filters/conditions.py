"""The tests a stored value can be put to, and the operand forms several of them share.

Five tests are enough: membership, a range, a piece of text, elements of a list, emptiness.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from models.core.values import InvalidValueError

MAX_OPERANDS = 500

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


class Where(StrEnum):
    ANYWHERE = "anywhere"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Piece:
    """The text contains another, whatever the case of its letters."""

    text: str
    where: Where


@dataclass(frozen=True, slots=True)
class Has:
    """The list has any, or every one, of these elements."""

    elements: tuple[Any, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Empty:
    """There is no value: absent, an empty text or an empty list."""


Test = In | Range | Piece | Has | Empty


def list_of(operand: Any) -> list[Any]:
    """A list of bounded length. Raises `InvalidValueError`."""
    if not isinstance(operand, list) or len(operand) > MAX_OPERANDS:
        raise InvalidValueError(f"must be a list of at most {MAX_OPERANDS} values")
    return operand


def pair_of(operand: Any) -> tuple[Any, Any]:
    """The two ends of a range. Raises `InvalidValueError`."""
    if not isinstance(operand, list) or len(operand) != 2:
        raise InvalidValueError("must be a list of two values, the lower one first")
    return operand[0], operand[1]


def ordered(span: Range) -> Range:
    """The range, when its lower end is not the higher one. Raises `InvalidValueError`."""
    if span.low is not None and span.high is not None and span.low > span.high:  # type: ignore[operator]  # both were read by one reader
        raise InvalidValueError("must be a list of two values, the lower one first")
    return span
