"""Payloads checked against the `inputSchema` of a trigger, a JSON Schema (decisions C7, D3).

Nothing is fetched for a `$ref`, and patterns run on an engine without backtracking.
"""

from typing import NoReturn

import jsonschema_rs

from models.automation.automations.rules.graph.kinds import shorten
from models.core.base import JsonObject
from runtime.errors import Detail, ValidationError

MAX_DETAILS = 20
_LONGEST_REASON = 300
"""The library quotes what it refuses, however long that is."""


def schema_problem(schema: JsonObject) -> str | None:
    """The reason why a schema cannot be used, or None."""
    try:
        _validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"It is not a usable JSON Schema: {_reason(error)}"
    return None


def check_payload(trigger_config: JsonObject, payload: JsonObject) -> None:
    """Raises ValidationError at `triggerPayload.…` when the trigger's schema refuses it."""
    schema = trigger_config.get("inputSchema")
    if schema is None:
        return
    details = []
    for error in _validator(schema).iter_errors(payload):
        path = ".".join(["triggerPayload", *(str(part) for part in error.instance_path)])
        details.append(Detail(path, shorten(error.message, _LONGEST_REASON)))
        if len(details) == MAX_DETAILS:
            break
    if details:
        raise ValidationError(
            f"The payload does not fit the automation's input schema: {details[0].message}",
            details,
        )


def _validator(schema: JsonObject) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
    )


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema, and nothing is fetched")


def _reason(error: Exception) -> str:
    message = getattr(error, "message", None) or str(error)
    return shorten(str(message).splitlines()[0], _LONGEST_REASON)
