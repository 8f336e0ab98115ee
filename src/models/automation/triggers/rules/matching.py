"""Matching of triggers with the events that they subscribe to (decisions C7)."""

from models.automation.automations.rules.triggers.filters import CHANGE, STATE, Asked, passes
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.triggers.rules.changes import changes_anything, kind_of, payload_of
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError


def matches_change(config: JsonObject, change: JsonObject, context: Asked) -> bool:
    """True when a trigger on records matches a change.

    Raises BindingError when its filter cannot be evaluated.
    """
    if change["system"] and not config.get("includeSystemChanges"):
        return False
    if config["kind"] == TriggerKind.RECORD_MATCHES:
        return _begins_to_match(config["filter"], change, context)
    if config["kind"] != kind_of(change) or not changes_anything(change):
        return False
    predicate = config.get("filter")
    return touches(config, change) and passes(predicate, CHANGE, payload_of(change), context)


def touches(config: JsonObject, change: JsonObject) -> bool:
    """True when a field changed that `fieldKeys` names; without `fieldKeys`, any field counts."""
    wanted = config.get("fieldKeys")
    return not wanted or not set(wanted).isdisjoint(change["changedKeys"])


def _begins_to_match(given: object, change: JsonObject, asked: Asked) -> bool:
    if change["gone"] or not passes(given, STATE, {"record": change["record"]}, asked):
        return False
    return not _matched(given, change["before"], asked)


def _matched(given: object, before: JsonObject | None, asked: Asked) -> bool:
    """True when a record matched before; if the filter fails on it, it did not."""
    if before is None:
        return False
    try:
        return passes(given, STATE, {"record": before}, asked)
    except BindingError:
        return False


def matches_event(config: JsonObject, subject_id: Id, payload: JsonObject) -> bool:
    """True when a trigger matches an event that is no change of a record."""
    match config["kind"]:
        case TriggerKind.BUTTON_PRESSED:
            return bool(payload["fieldKey"] == config["fieldKey"])
        case TriggerKind.DATA_SOURCE_FINISHED:
            return config["on"] in ("any", payload["run"]["status"])
        case TriggerKind.AUTOMATION_FAILED:
            wanted = config["automationIds"]
            return wanted == "any" or str(subject_id) in {one.lower() for one in wanted}
        case TriggerKind.TIME_ENTRY_COMPLETED:
            asked = ((key, config.get(key)) for key in ("targetKind", "databaseId"))
            entry = payload["entry"]
            return all(want is None or want.lower() == entry.get(key) for key, want in asked)
        case _:
            return True
