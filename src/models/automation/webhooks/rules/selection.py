"""The calls that start a run: they match the filter, and are no repetition."""

import json
from datetime import datetime

from pydantic import JsonValue

from models.automation.automations.rules.language.filters import matches
from models.automation.automations.rules.language.paths import compile_path
from models.automation.automations.rules.triggers.webhooks import Deduplication, Webhook
from models.automation.webhooks.rules.delivery import Delivery
from models.core.base import JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import saved_expression
from runtime.crypto import fingerprint

_BY_DEFAULT = (
    Deduplication(source="header", name="webhook-id"),
    Deduplication(source="header", name="idempotency-key"),
)
"""Headers unique to a message by Standard Webhooks, to a request by the Idempotency-Key draft."""


def lets_through(webhook: Webhook, payload: JsonObject, now: datetime) -> bool:
    """True when the filter matches the payload, which it reads as `trigger`.

    An expression that fails on it, such as one that reads a key it does not have, does not hold.
    """
    if webhook.filter is None:
        return True
    try:
        if isinstance(webhook.filter, dict):
            return matches(webhook.filter, {"trigger": payload}, now)
        return saved_expression(webhook.filter).evaluate({"trigger": payload}) is True
    except BindingError:
        return False


def deduplication(webhook: Webhook, delivery: Delivery) -> Deduplication | None:
    """The deduplication of calls: as configured, or else by a standard header of the call."""
    given = (how for how in _BY_DEFAULT if delivery.header(str(how.name)))
    return webhook.dedupe or next(given, None)


def call_key(rule: Deduplication, delivery: Delivery, payload: JsonObject) -> bytes | None:
    """The deduplication key of a call; None when it has none."""
    if rule.source == "body_hash":
        return fingerprint(b"body", delivery.query, delivery.body)
    assert rule.name is not None, "the compiler asks for it"
    if rule.source == "header":
        value = delivery.header(rule.name)
        return None if not value else fingerprint(b"header", value.encode("latin-1"))
    found = _value_at(rule.name, payload)
    if found is None:
        return None
    return fingerprint(b"path", json.dumps(found, sort_keys=True).encode())


def _value_at(path: str, payload: JsonObject) -> JsonValue:
    """The value at a path: from `trigger`, as in filters, from the payload, or from its body."""
    roots: tuple[JsonValue, ...] = ({"trigger": payload}, payload, payload["body"])
    found = (compile_path(path).get(root) for root in roots)
    return next((value for value in found if value not in (None, [])), None)
