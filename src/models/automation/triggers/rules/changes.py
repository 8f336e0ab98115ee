"""One change of one record, or several of them merged, as triggers see it.

A change is JSON, for it waits in the database: `record` and `before` are the record as the API
shows it after and before the change (null for a record that was not there), `changedKeys` the keys
of the fields whose values differ, `actor` who made the change, `gone` whether the record is in the
trash now, and `system` whether the platform made the change by itself.
"""

from collections.abc import Iterable

from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import JsonObject
from models.data.records.rules.events import differing

_PAYLOAD = ("record", "before", "changedKeys", "actor")


def payload_of(change: JsonObject) -> JsonObject:
    """The trigger payload of a change (decisions C7)."""
    return {key: change[key] for key in _PAYLOAD}


def kind_of(change: JsonObject) -> TriggerKind | None:
    """The trigger kind of a change; None for a record that was created and deleted.

    A record restored from the trash counts as created.
    """
    if change["gone"]:
        return None if change["before"] is None else TriggerKind.RECORD_DELETED
    return TriggerKind.RECORD_CREATED if change["before"] is None else TriggerKind.RECORD_UPDATED


def merged(first: JsonObject, later: JsonObject) -> JsonObject:
    """Two changes of one record as one: the state before the first, and after the later one."""
    return _with_keys({**later, "before": first["before"]}, first["changedKeys"])


def with_part(change: JsonObject, part: JsonObject) -> JsonObject:
    """A merged change with a change that happened between its first and its last."""
    return _with_keys(change, part["changedKeys"])


def _with_keys(change: JsonObject, keys: Iterable[str]) -> JsonObject:
    touched = sorted({*change["changedKeys"], *keys})
    if change["before"] is not None:
        touched = differing(change["before"], change["record"], touched)
    return {**change, "changedKeys": touched}


def changes_anything(change: JsonObject) -> bool:
    """True when the record differs from before. Merged changes may undo each other."""
    before, record = change["before"], change["record"]
    moved = before is None or bool(change["gone"]) or before["archived"] != record["archived"]
    return moved or bool(change["changedKeys"])
