"""The trigger payload of a run that a webhook call started (decisions C7)."""

import base64
import codecs
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from pydantic import JsonValue

from models.automation.automations.rules.triggers.webhooks import SECRET_HEADER, Webhook
from models.automation.webhooks.rules.delivery import Delivery
from models.core.base import JsonObject
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
_CHARSETS = frozenset(
    {"utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "koi8-r", "shift_jis", "euc-jp"}
    | {"euc-kr", "big5", "gbk", "gb2312", "gb18030"}
    | {f"iso-8859-{part}" for part in range(1, 17) if part != 12}
    | {f"windows-125{part}" for part in range(9)}
)
"""By their IANA names. Python has codecs that are no charsets, such as `idna` and `zip`."""


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
    media_type = delivery.media_type
    if media_type == "application/json" or media_type.endswith("+json"):
        return _json(delivery.body), "json"
    if media_type == "application/x-www-form-urlencoded":
        return _fields(delivery.body, "body"), "form"
    text = _text(delivery)
    if text is None:
        return base64.b64encode(delivery.body).decode(), "base64"
    return text, "text"


def _text(delivery: Delivery) -> str | None:
    """The body in the charset it is said to have, else in UTF-8; None when it is no text."""
    for charset in (delivery.charset, "utf-8"):
        if charset not in _CHARSETS:
            continue
        try:
            text = delivery.body.decode(charset)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text
    return None


def _json(body: bytes) -> JsonValue:
    try:
        # Others' ids go beyond what we let our own clients write, and a byte order mark may be
        # ignored (RFC 8259, 8.1).
        return parse(body.removeprefix(codecs.BOM_UTF8), largest=MAX_FINITE_INTEGER)
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
