"""What a run is told of the call that started it (decisions C7)."""

import base64
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from models.automations.rules.webhooks import SECRET_HEADER, Webhook
from models.base import JsonObject
from models.webhooks.rules.delivery import Delivery
from runtime.errors import ValidationError
from runtime.strict_json import MAX_FINITE_INTEGER, StrictJsonError, parse

MAX_FIELDS = 1_000
"""Fields of a form or parameters of a query."""

_SECRETIVE = re.compile(
    r"(?:\b|_)auth(?:\b|_)|authori[sz]ation|authenticat|cookie|token|secret|signature|hmac"
    r"|passw|credential|(?:api|access|private)[-_]?key|jwt|session|csrf|xsrf"
)
_TRANSPORT = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "proxy-connection"}
)


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
    """The headers without those that are, or look like, credentials and signatures."""
    hidden = {SECRET_HEADER.lower(), (webhook.header or "").lower()}
    hidden.add((webhook.signing.header or "").lower())
    headers: dict[str, str] = {}
    for name, value in delivery.headers:
        if name in hidden or name in _TRANSPORT or _SECRETIVE.search(name) or "\x00" in value:
            continue
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body(delivery: Delivery) -> tuple[Any, str | None]:
    """The body as a JSON value, and how it was read: `json`, `form`, `text` or `base64`."""
    if delivery.method == "GET" or not delivery.body:
        return None, None
    media_type = delivery.media_type
    if media_type == "application/json" or media_type.endswith("+json"):
        return _json(delivery.body), "json"
    if media_type == "application/x-www-form-urlencoded":
        return _fields(delivery.body, "body"), "form"
    try:
        text = delivery.body.decode()
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" in text:
        return base64.b64encode(delivery.body).decode(), "base64"
    return text, "text"


def _json(body: bytes) -> Any:
    try:
        # Others' ids go beyond what we let our own clients write.
        return parse(body, largest=MAX_FINITE_INTEGER)
    except StrictJsonError as error:
        raise ValidationError.at(error.path, error.message) from None


def _fields(encoded: bytes, place: str) -> JsonObject:
    """The fields of a form or a query by name; one that occurs several times is a list."""
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise ValidationError.at(
            place, f"It must be percent-encoded UTF-8 text of at most {MAX_FIELDS} fields."
        ) from None
    if any("\x00" in part for pair in pairs for part in pair):
        raise ValidationError.at(place, "NUL is not text.")
    return _by_name(pairs)


def _by_name(pairs: Iterable[tuple[str, str]]) -> JsonObject:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}
