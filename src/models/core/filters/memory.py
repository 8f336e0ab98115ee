"""The meaning of filters for values at hand; `models.data.records` says the same in SQL."""

from collections.abc import Callable
from typing import Any, TypeVar

from models.core.filters.conditions import (
    Anchor,
    Condition,
    Empty,
    Has,
    In,
    Range,
    Substring,
)
from models.core.filters.grammar import AllOf, AnyOf, Filter, Not
from models.core.values import same_json

L = TypeVar("L")

_LOWERED = str.maketrans({"\u0130": "i", "\u03a3": "\u03c3"})
"""Letters that `str.lower` alone makes two of, or makes one of by what stands beside them."""


def holds(tree: Filter[L], passes: Callable[[L], bool]) -> bool:
    """True when a filter holds; `passes` says so of each of its leaves."""
    match tree:
        case Not(part):
            return not holds(part, passes)
        case AllOf(parts):
            return all(holds(part, passes) for part in parts)
        case AnyOf(parts):
            return any(holds(part, passes) for part in parts)
        case leaf:
            return passes(leaf)


def meets(condition: Condition, value: object) -> bool:
    """True when a value meets a condition of its form; None is no value."""
    match condition:
        case Empty():
            return is_empty(value)
        case In(members):
            return any(same_json(value, member) for member in members)
        case Range():
            return value is not None and lies_in(value, condition)
        case Substring(text, anchor):
            return isinstance(value, str) and _has_text(fold(value), fold(text), anchor)
        case Has(elements, every):
            if not isinstance(value, list):
                return False
            matches = (any(same_json(element, item) for item in value) for element in elements)
            return all(matches) if every else any(matches)


def is_empty(value: object) -> bool:
    """True when there is nothing: no value, an empty text, an empty list or an empty object."""
    return value is None or value in ("", [], {})


def fold(text: str) -> str:
    """A text without the case of its letters, each letter by itself, as PostgreSQL has it."""
    return text.lower() if text.isascii() else text.translate(_LOWERED).lower()


def lies_in(value: Any, span: Range) -> bool:
    """True when a value lies in a range of values that it can be ordered with."""
    if span.low is not None and not (value >= span.low if span.with_low else value > span.low):
        return False
    return span.high is None or bool(value <= span.high if span.with_high else value < span.high)


def _has_text(value: str, text: str, anchor: Anchor) -> bool:
    match anchor:
        case Anchor.START:
            return value.startswith(text)
        case Anchor.END:
            return value.endswith(text)
        case Anchor.ANYWHERE:
            return text in value
