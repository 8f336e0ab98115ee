"""The part of a change of a record that is stored. Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic_core import to_json

from models.core.base import Id, JsonObject

MAX_KEPT = 16 * 1024
"""Bytes of one value's JSON; of a longer one only its key is kept."""


class ChangeKind(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    ARCHIVED = "archived"
    RESTORED = "restored"
    DELETED = "deleted"


class RecordedChange(NamedTuple):
    """One change of one record.

    `before` and `after` map the keys of changed fields to their values, a key without a value
    being absent; None where there is nothing to say. `omitted` are keys of values too long to keep.
    """

    record_id: Id
    kind: ChangeKind
    before: JsonObject | None
    after: JsonObject | None
    omitted: Sequence[str] = ()


def recorded(
    record_id: Id, kind: ChangeKind, before: JsonObject | None, after: JsonObject | None
) -> RecordedChange:
    """The change, without the values that are too long to keep."""
    if not _long(before) and not _long(after):
        return RecordedChange(record_id, kind, before, after)
    omitted = _long_keys(before) | _long_keys(after)
    return RecordedChange(
        record_id, kind, _without(before, omitted), _without(after, omitted), sorted(omitted)
    )


def _long_keys(values: JsonObject | None) -> set[str]:
    return {key for key, value in (values or {}).items() if _long(value)}


def _long(value: object) -> bool:
    return value is not None and len(to_json(value)) > MAX_KEPT


def _without(values: JsonObject | None, omitted: set[str]) -> JsonObject | None:
    if values is None:
        return None
    return {key: value for key, value in values.items() if key not in omitted}


def changed_keys(
    before: JsonObject | None, after: JsonObject | None, omitted: Sequence[str] | None
) -> list[str]:
    """The keys a change touched, each once."""
    return list(dict.fromkeys((*(before or ()), *(after or ()), *(omitted or ()))))
