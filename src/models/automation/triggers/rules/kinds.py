"""Kinds of events, and which triggers hear them (decisions C7)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from models.automation.automation_runs.rules import RunSource
from models.automation.automations.rules.triggers.configs import TriggerKind
from models.core.base import Id, JsonObject
from runtime.ids import parse_id


class EventKind(StrEnum):
    """What happened; all but the first are named like the one trigger that hears them."""

    RECORD_CHANGED = "record_changed"
    RECORD_DATE_REACHED = TriggerKind.RECORD_DATE_REACHED.value
    """About one automation, which is its subject."""
    FORM_SUBMITTED = TriggerKind.FORM_SUBMITTED.value
    BUTTON_PRESSED = TriggerKind.BUTTON_PRESSED.value
    DATA_SOURCE_FINISHED = TriggerKind.DATA_SOURCE_FINISHED.value
    AUTOMATION_FAILED = TriggerKind.AUTOMATION_FAILED.value
    TIME_ENTRY_COMPLETED = TriggerKind.TIME_ENTRY_COMPLETED.value


RECORD_TRIGGERS = (
    TriggerKind.RECORD_CREATED,
    TriggerKind.RECORD_UPDATED,
    TriggerKind.RECORD_DELETED,
    TriggerKind.RECORD_MATCHES,
    TriggerKind.RECORD_DATE_REACHED,
)
"""The triggers that hear changes of records."""

RUN_SOURCES: Mapping[str, RunSource] = {
    **dict.fromkeys(RECORD_TRIGGERS, RunSource.RECORD),
    TriggerKind.FORM_SUBMITTED: RunSource.FORM,
    TriggerKind.BUTTON_PRESSED: RunSource.BUTTON,
    TriggerKind.DATA_SOURCE_FINISHED: RunSource.DATA_SOURCE,
    TriggerKind.AUTOMATION_FAILED: RunSource.FAILURE,
    TriggerKind.TIME_ENTRY_COMPLETED: RunSource.TIME_ENTRY,
}
"""The triggers that listen to events, with the source of the runs they start."""

_SUBJECTS = ("databaseId", "formItemId", "dataSourceId")


def listens(trigger_config: JsonObject) -> bool:
    """Whether a trigger listens to events at all."""
    return trigger_config["kind"] in RUN_SOURCES


def subject_of(trigger_config: JsonObject) -> Id | None:
    """The one thing a trigger listens to; None when that is for the event itself to say."""
    if trigger_config["kind"] == TriggerKind.TIME_ENTRY_COMPLETED:
        return None
    named: Any = next((trigger_config[key] for key in _SUBJECTS if key in trigger_config), None)
    return None if named is None else parse_id(named)


def hears_system(trigger_config: JsonObject) -> bool:
    """Whether a trigger hears what the platform changes by itself: imports, refreshes.

    Dates are reached whoever wrote them.
    """
    if trigger_config["kind"] == TriggerKind.RECORD_DATE_REACHED:
        return True
    return bool(trigger_config.get("includeSystemChanges"))
