"""One change of one record, or several of them merged, as triggers see it.

A change is JSON, for it waits in the database: `record` and `before` are the record as the API
shows it after and before the change (null for a record that was not there), `changedKeys` the keys
of the fields whose values differ, `actor` who made the change, `gone` whether the record is in the
trash now, and `system` whether the platform made the change by itself.
"""

from collections.abc import Iterable
from typing import Any

from pydantic_core import to_json

from models.automation.automations.rules.triggers.configs import TriggerKind
from models.core.base import JsonObject
from models.core.values import same_json
from models.data.record_changes.rules import MAX_KEPT

MAX_BYTES = 1 << 20
"""The size of a payload (decisions C3)."""

_VALUES = ("data", "relations", "computed", "system")
_TOLD = ("record", "before", "changedKeys", "actor")


def payload_of(change: JsonObject) -> JsonObject:
    """What runs are told of a change (decisions C7)."""
    return {key: change[key] for key in _TOLD}


def kind_of(change: JsonObject) -> TriggerKind | None:
    """The trigger a change is for; None for a record that came and went.

    A record that comes back from the trash is created for those who listen.
    """
    if change["gone"]:
        return None if change["before"] is None else TriggerKind.RECORD_DELETED
    return TriggerKind.RECORD_CREATED if change["before"] is None else TriggerKind.RECORD_UPDATED


def merged(first: JsonObject, later: JsonObject) -> JsonObject:
    """Two changes of one record as one: the state before the first, and after the later one."""
    return _with_keys({**later, "before": first["before"]}, first["changedKeys"])


def with_part(whole: JsonObject, part: JsonObject) -> JsonObject:
    """A merged change with one that happened in the midst of it."""
    return _with_keys(whole, part["changedKeys"])


def _with_keys(change: JsonObject, keys: Iterable[str]) -> JsonObject:
    touched = sorted({*change["changedKeys"], *keys})
    if change["before"] is not None:
        touched = differing(change["before"], change["record"], touched)
    return {**change, "changedKeys": touched}


def changes_anything(change: JsonObject) -> bool:
    """Whether anything is other than before; merged changes may undo each other."""
    before, record = change["before"], change["record"]
    moved = before is None or bool(change["gone"]) or before["archived"] != record["archived"]
    return moved or bool(change["changedKeys"])


def _same(before: JsonObject, record: JsonObject, key: str) -> bool:
    return all(same_json(before[part].get(key), record[part].get(key)) for part in _VALUES)


def differing(before: JsonObject, record: JsonObject, keys: Iterable[str]) -> list[str]:
    """Those of these keys of fields whose values differ, or may: they were left out as too long."""
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


def _size(value: Any) -> int:
    return len(to_json(value))
