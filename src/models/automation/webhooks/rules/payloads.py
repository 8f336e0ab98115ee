"""The trigger payload of a run that a webhook call started (decisions C7)."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from pydantic import JsonValue

from models.automation.automations.rules.triggers.webhooks import SECRET_HEADER, Webhook
from models.automation.webhooks.rules import form_data
from models.automation.webhooks.rules.delivery import Delivery
from models.core.base import JsonObject
from runtime.content_types import ContentType, as_text_or_base64
from runtime.errors import ValidationError
from runtime.strict_json import MAX_FINITE_INTEGER, StrictJsonError, parse

MAX_FIELDS = 1_000
"""Fields of a form or parameters of a query."""

_SECRETIVE = re.compile(
    r"(?:\b|_)auth(?:\b|_)|authori[sz]ation|authenticat|cookie|token|secret|signature|hmac"
    r"|passw|credential|(?:api|access|private)[-_]?key|jwt|session|csrf|xsrf"
)
_TRANSPORT = re.compile(
    r"(?:connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade"
    r"|proxy-connection|forwarded|x-forwarded-.+|x-real-ip)\Z"
)
"""Headers about the connection, of the client or of a proxy before us."""


def read_payload(webhook: Webhook, delivery: Delivery) -> JsonObject:
    """`{method, headers, query, body, bodyEncoding, webhookId}`.

    Raises ValidationError for a body that is not what its type says, or a query that is no text.
    """
    body, encoding = _body(delivery)
    return {
        "method": delivery.method,
        "headers": _safe_headers(webhook, delivery),
        "query": _fields(delivery.query, "query"),
        "body": body,
        "bodyEncoding": encoding,
        "webhookId": delivery.header("webhook-id"),
    }


def _safe_headers(webhook: Webhook, delivery: Delivery) -> JsonObject:
    """The headers, except credentials, signatures and headers that look like them."""
    hidden = {SECRET_HEADER.lower(), (webhook.header or "").lower()}
    hidden.add((webhook.signing.header or "").lower())
    headers: dict[str, str] = {}
    for name, value in delivery.headers:
        if name in hidden or _TRANSPORT.match(name) or _SECRETIVE.search(name) or "\x00" in value:
            continue
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body(delivery: Delivery) -> tuple[Any, str | None]:
    """The body as a JSON value, and how it was read: `json`, `form`, `text` or `base64`."""
    if delivery.method == "GET" or not delivery.body:
        return None, None
    content_type = delivery.content_type
    if content_type.is_json:
        return _json(content_type, delivery.body), "json"
    if content_type.media_type == "application/x-www-form-urlencoded":
        return _fields(delivery.body, "body", content_type.charset or "utf-8"), "form"
    if content_type.media_type == form_data.TYPE:
        said = delivery.header("content-type") or ""
        return _by_name(form_data.form_pairs(said, delivery.body)), "form"
    return as_text_or_base64(content_type, delivery.body)


def _json(content_type: ContentType, body: bytes) -> JsonValue:
    text = content_type.decode(body)
    try:
        # Others' ids go beyond what we let our own clients write.
        return parse(body if text is None else text.encode(), largest=MAX_FINITE_INTEGER)
    except StrictJsonError as error:
        raise ValidationError.at(error.path, error.message) from None


def _fields(encoded: bytes, place: str, charset: str = "utf-8") -> JsonObject:
    """The fields of a form or a query by name; one that occurs several times is a list."""
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"),
            keep_blank_values=True,
            encoding=charset,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise ValidationError.at(
            place, f"It must be percent-encoded text of at most {MAX_FIELDS} fields."
        ) from None
    if any("\x00" in part for pair in pairs for part in pair):
        raise ValidationError.at(place, "NUL is not text.")
    return _by_name(pairs)


def _by_name(pairs: Iterable[tuple[str, JsonValue]]) -> JsonObject:
    found: dict[str, list[JsonValue]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}
