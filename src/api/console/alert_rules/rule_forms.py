"""The form of an alert rule: the fields of each kind, and the body that they stand for."""

from collections.abc import Mapping, Sequence

from api.console.entered import Fields
from api.console.forms import number_of
from models.automation.alert_rules.conditions import AlertKind
from models.automation.alert_rules.shapes import AlertRuleShape
from models.core.base import JsonObject

NUMBERS: Mapping[AlertKind, Sequence[str]] = {
    AlertKind.FAILURES: ("runs", "minutes"),
    AlertKind.SILENCE: ("minutes",),
    AlertKind.DURATION: ("minutes",),
    AlertKind.QUEUE_AGE: ("minutes",),
    AlertKind.WORKER_GONE: ("minutes",),
    AlertKind.CONNECTION_FAILING: ("failures", "minutes"),
}
"""The numbers of a condition, by its kind."""
ABOUT_RUNS = {
    AlertKind.FAILURES,
    AlertKind.SILENCE,
    AlertKind.DURATION,
    AlertKind.QUEUE_AGE,
}
"""The kinds that take filters of runs."""
FILTERS = ("automationId", "errorCode", "failedNodeId")
"""The filters that the form has. Others of a rule stay as they are."""
STARTS: Mapping[str, int] = {"runs": 10, "minutes": 15, "failures": 3}
"""The numbers of a new rule."""


def fields_of(kind: AlertKind) -> list[str]:
    """The names of the fields that show what is wrong with them."""
    places = [*NUMBERS[kind], *(["outcome"] if kind is AlertKind.SILENCE else [])]
    if kind is AlertKind.CONNECTION_FAILING:
        places.append("connectionId")
    queries = [f"query.{name}" for name in FILTERS] if kind in ABOUT_RUNS else []
    return ["label", "repeatMinutes", *(f"condition.{place}" for place in [*places, *queries])]


def values_of(body: Fields, kind: AlertKind, before: AlertRuleShape | None = None) -> JsonObject:
    """The body of the operation; of a rule there was `before` the other filters stay."""
    texts = body.texts
    condition: JsonObject = {"kind": kind.value}
    for name in NUMBERS[kind]:
        condition[name] = number_of(texts.get(f"condition.{name}", ""))
    if kind is AlertKind.SILENCE:
        condition["outcome"] = texts.get("condition.outcome", "ended")
    if kind is AlertKind.CONNECTION_FAILING:
        condition["connectionId"] = texts.get("condition.connectionId", "")
    if kind in ABOUT_RUNS:
        stored = {} if before is None else before.condition.get("query", {})
        query = {name: one for name, one in stored.items() if name not in FILTERS}
        filled = {name: texts.get(f"condition.query.{name}", "") for name in FILTERS}
        condition["query"] = {**query, **{name: text for name, text in filled.items() if text}}
    recipients = body.checked("recipient")
    return {
        "label": texts.get("label", ""),
        "condition": condition,
        "repeatMinutes": number_of(texts.get("repeatMinutes", "")),
        **({"recipientUserIds": recipients} if recipients else {}),
    }
