"""Which triggers subscribe to events, and to which subject (decisions C7)."""

from collections.abc import Mapping
from typing import Any

from models.automation.automation_runs.rules import RunSource
from models.automation.automations.rules.triggers.configs import TriggerKind
from models.core.base import Id, JsonObject
from models.messages.events.rules import RECORD_SUBSCRIPTIONS
from runtime.ids import parse_id

RECORD_TRIGGERS = tuple(TriggerKind(kind) for kind in RECORD_SUBSCRIPTIONS)
"""The triggers that subscribe to changes of records."""

RUN_SOURCES: Mapping[str, RunSource] = {
    **dict.fromkeys(RECORD_TRIGGERS, RunSource.RECORD),
    TriggerKind.FORM_SUBMITTED: RunSource.FORM,
    TriggerKind.BUTTON_PRESSED: RunSource.BUTTON,
    TriggerKind.DATA_SOURCE_FINISHED: RunSource.DATA_SOURCE,
    TriggerKind.AUTOMATION_FAILED: RunSource.FAILURE,
    TriggerKind.TIME_ENTRY_COMPLETED: RunSource.TIME_ENTRY,
}
"""The triggers that subscribe to events, with the source of the runs they start."""

_SUBJECTS = ("databaseId", "formItemId", "dataSourceId")


def subscribes(trigger_config: JsonObject) -> bool:
    """Whether a trigger subscribes to events at all."""
    return trigger_config["kind"] in RUN_SOURCES


def subject_of(trigger_config: JsonObject) -> Id | None:
    """The id of what a trigger subscribes to; None when it matches events of any subject."""
    if trigger_config["kind"] == TriggerKind.TIME_ENTRY_COMPLETED:
        return None
    named: Any = next((trigger_config[key] for key in _SUBJECTS if key in trigger_config), None)
    return None if named is None else parse_id(named)


def includes_system_changes(trigger_config: JsonObject) -> bool:
    """Whether a trigger also answers changes by the platform itself: imports, refreshes.

    A trigger on dates always does.
    """
    if trigger_config["kind"] == TriggerKind.RECORD_DATE_REACHED:
        return True
    return bool(trigger_config.get("includeSystemChanges"))
