"""Differences of two JSON values by path: pure, bounded in number, length and work."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

MOST_VALUES = 50_000
"""Values that are looked at, of both sides together."""
LONGEST = 200
"""Characters of a value that are told."""
_BEFORE = 40
"""Characters that are told before the first one in which two long texts differ."""
_ABSENT: Any = object()


class ValueChange(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which two values differ; both sides as JSON text, None where there is none."""

    path: str
    change: ValueChange
    before: str | None
    after: str | None


def differences(before: object, after: object, most: int) -> tuple[list[Difference], bool]:
    """The first differences in the order of paths, and whether these are all."""
    budget = iter(range(MOST_VALUES))
    listed = list(islice(_walk(before, after, budget), most + 1))
    is_complete = len(listed) <= most and next(budget, None) is not None
    return listed[:most], is_complete


def _walk(before: object, after: object, budget: Iterator[int]) -> Iterator[Difference]:
    """Differences along a stack of its own: values may be nested deeper than calls."""
    waiting: list[tuple[str, Any, Any]] = [("", before, after)]
    while waiting and next(budget, None) is not None:
        path, old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [*old, *(key for key in new if key not in old)]
            waiting.extend(
                (_key(path, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
                for key in reversed(keys)
            )
        elif isinstance(old, list) and isinstance(new, list):
            waiting.extend(
                (f"{path}[{index}]", _at(old, index), _at(new, index))
                for index in reversed(range(max(len(old), len(new))))
            )
        elif not _same(old, new):
            yield _difference(path, old, new)


def _key(path: str, key: str) -> str:
    if key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def _at(values: list[Any], index: int) -> object:
    return values[index] if index < len(values) else _ABSENT


def _same(old: object, new: object) -> bool:
    """True for equal JSON values, where true is not 1 as it is in Python."""
    return isinstance(old, bool) == isinstance(new, bool) and old == new


def _difference(path: str, old: object, new: object) -> Difference:
    if old is _ABSENT:
        return Difference(path, ValueChange.ADDED, None, _brief(_text(new)))
    if new is _ABSENT:
        return Difference(path, ValueChange.REMOVED, _brief(_text(old)), None)
    texts = _text(old), _text(new)
    start = max(0, _common(*texts) - _BEFORE) if max(map(len, texts)) > LONGEST else 0
    before, after = (_brief(text, start) for text in texts)
    return Difference(path, ValueChange.CHANGED, before, after)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _common(one: str, other: str) -> int:
    """The length of the beginning that two texts share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _brief(text: str, start: int = 0) -> str:
    """A text from a character on, with marks where something is left out."""
    part = text[start : start + LONGEST]
    return f"{'…' if start else ''}{part}{'…' if start + LONGEST < len(text) else ''}"
