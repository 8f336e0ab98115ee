"""The event of a changed record: the fields that differ, and the part of it that may wait."""

from collections.abc import Iterable
from typing import Any

from pydantic_core import to_json

from models.core.base import JsonObject
from models.core.values import same_json
from models.data.record_changes.rules import MAX_KEPT

MAX_BYTES = 1 << 20
"""The size of a payload (decisions C3)."""

_VALUES = ("data", "relations", "computed", "system")


def _same(before: JsonObject, record: JsonObject, key: str) -> bool:
    return all(same_json(before[part].get(key), record[part].get(key)) for part in _VALUES)


def differing(before: JsonObject, record: JsonObject, keys: Iterable[str]) -> list[str]:
    """The given keys of fields whose values differ, or may: they were left out as too long."""
    unknown = {*_omitted(before), *_omitted(record)}
    return [key for key in keys if key in unknown or not _same(before, record, key)]


def _omitted(record: JsonObject) -> Iterable[str]:
    keys: list[str] = record.get("omittedKeys", [])
    return keys


def bounded(change: JsonObject) -> JsonObject:
    """The change as it may wait: of one that is too large, long values are left out (C3).

    `omittedKeys` in a record then names them. Where many values are too much together, shorter
    ones are left out, too.
    """
    kept, longest = change, MAX_KEPT
    while _size(kept) > MAX_BYTES and longest:
        sides = {side: _without_long(change[side], longest) for side in ("record", "before")}
        kept, longest = {**change, **sides}, longest // 4
    return kept


def _without_long(record: JsonObject | None, longest: int) -> JsonObject | None:
    if record is None:
        return None
    long = {
        key
        for part in (*_VALUES, "related")
        for key, value in record.get(part, {}).items()
        if _size(value) > longest
    }
    kept: dict[str, Any] = {
        part: {key: value for key, value in record[part].items() if key not in long}
        for part in (*_VALUES, "related")
        if part in record
    }
    return {**record, **kept, "omittedKeys": sorted({*long, *_omitted(record)})}


def _size(value: object) -> int:
    return len(to_json(value))
