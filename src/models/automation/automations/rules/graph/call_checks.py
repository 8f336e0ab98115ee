"""Checks of a call's input against the input schema of the called automation (C8)."""

from collections.abc import Iterator

from models.automation.automations.rules.graph.catalog import ReferenceCatalog
from models.automation.automations.rules.language.bindings import holds_binding, is_binding
from models.automation.automations.rules.triggers.payloads import check_payload
from models.core.base import JsonObject
from runtime.errors import ValidationError


def call_problems(value: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    """The problems of the input for the published version of the called automation.

    Of an input with bindings only the keys are checked. The input of an automation that calls
    itself is not checked: publishing this version changes the schema.
    """
    automation_id, payload = value.get("automationId"), value.get("input", {})
    if not isinstance(automation_id, str) or automation_id.lower() == catalog.automation_id:
        return
    trigger = catalog.triggers.get(automation_id.lower())
    if trigger is None or not isinstance(payload, dict) or is_binding(payload):
        return
    if holds_binding(payload):
        yield from _missing(trigger.get("inputSchema"), payload)
        return
    try:
        check_payload(trigger, payload)
    except ValidationError as error:
        for problem in error.details:
            yield problem.path.replace("triggerPayload", "input", 1), problem.message


def _missing(schema: object, given: JsonObject) -> Iterator[tuple[str, str]]:
    required = schema.get("required") if isinstance(schema, dict) else None
    for key in required if isinstance(required, list) else []:
        if key not in given:
            yield f"input.{key}", "is required"
