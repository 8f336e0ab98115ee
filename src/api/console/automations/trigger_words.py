"""Triggers as sentences."""

from collections.abc import Mapping

from api.console.words import duration
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import JsonObject

_SENTENCES: Mapping[TriggerKind, str] = {
    TriggerKind.MANUAL: "A person or a call of the API starts it.",
    TriggerKind.WEBHOOK: "An HTTP call to its webhook starts it.",
    TriggerKind.RECORD_CREATED: "A record that is created in a database starts it.",
    TriggerKind.RECORD_UPDATED: "A record that is changed in a database starts it.",
    TriggerKind.RECORD_DELETED: "A record that is deleted from a database starts it.",
    TriggerKind.RECORD_MATCHES: "A record that begins to satisfy a filter starts it.",
    TriggerKind.RECORD_DATE_REACHED: "The date in a field of a record starts it.",
    TriggerKind.FORM_SUBMITTED: "An answer to a form starts it.",
    TriggerKind.BUTTON_PRESSED: "A button in a record starts it.",
    TriggerKind.DATA_SOURCE_FINISHED: "The end of a refresh of a data source starts it.",
    TriggerKind.AUTOMATION_FAILED: "A failed run of another automation starts it.",
    TriggerKind.AUTOMATION_CALLED: "A node of another automation starts it.",
    TriggerKind.TIME_ENTRY_COMPLETED: "A completed time entry starts it.",
}


def in_words(config: JsonObject) -> str:
    """A trigger as a sentence."""
    kind = TriggerKind(config["kind"])
    if kind is TriggerKind.SCHEDULE:
        return _schedule(config)
    if kind is TriggerKind.WEBHOOK and config.get("respond") == "wait":
        return "An HTTP call to its webhook starts it, and waits for its answer."
    return _SENTENCES[kind]


def _schedule(config: JsonObject) -> str:
    zone = config.get("timezone") or "UTC"
    if config.get("intervalSeconds"):
        return f"The clock starts it every {duration(config['intervalSeconds'])}."
    return f"The clock starts it by the cron expression {config.get('cron')}, in {zone}."
