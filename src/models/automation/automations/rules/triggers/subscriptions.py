"""The triggers that subscribe to events, and the subjects they name (decisions C7)."""

from typing import Any

from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import Id, JsonObject
from models.messages.events.rules import RECORD_SUBSCRIPTIONS, EventKind
from runtime.ids import parse_id

RECORD_TRIGGERS = tuple(TriggerKind(kind) for kind in RECORD_SUBSCRIPTIONS)
"""The triggers that subscribe to changes of records."""

EVENT_TRIGGERS = frozenset(
    {
        *RECORD_TRIGGERS,
        *(TriggerKind(kind) for kind in EventKind if kind is not EventKind.RECORD_CHANGED),
    }
)
"""The triggers that subscribe to events."""

_SUBJECTS = ("databaseId", "formItemId", "dataSourceId")


def subscribes(trigger_config: JsonObject) -> bool:
    """True when a trigger subscribes to events at all."""
    return trigger_config["kind"] in EVENT_TRIGGERS


def subject_of(trigger_config: JsonObject) -> Id | None:
    """The id of what a trigger subscribes to; None when it matches events of any subject."""
    if trigger_config["kind"] == TriggerKind.TIME_ENTRY_COMPLETED:
        return None
    named: Any = next((trigger_config[key] for key in _SUBJECTS if key in trigger_config), None)
    return None if named is None else parse_id(named)


def includes_system_changes(trigger_config: JsonObject) -> bool:
    """True when a trigger also answers changes by the platform itself: imports, refreshes.

    A trigger on dates always does.
    """
    if trigger_config["kind"] == TriggerKind.RECORD_DATE_REACHED:
        return True
    return bool(trigger_config.get("includeSystemChanges"))
