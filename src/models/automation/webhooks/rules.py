"""Pure rules of webhook calls: verification, selection, deduplication, payloads.

Sources of the verification: Standard Webhooks, "Verifying webhooks"; RFC 7617 for `basic`.
"""

import base64
import binascii
import hmac
import json
import quopri
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from pydantic import JsonValue
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from models.automation.automations.rules.language.filters import failed_term, matches
from models.automation.automations.rules.language.paths import compile_path
from models.automation.automations.rules.triggers import kinds as trigger_kinds
from models.automation.inbox.rules import MAX_PAYLOAD
from models.core.base import JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import saved_expression
from runtime import content_types
from runtime.crypto import fingerprint
from runtime.errors import ValidationError
from runtime.redaction import REDACTED, Redaction, without_named_secrets
from runtime.strict_json import MAX_FINITE_INTEGER, StrictJsonError, parse


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call; header names are in lower case, header values text of bytes (ISO 8859-1)."""

    method: str
    headers: Sequence[tuple[str, str]]
    query: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header; None when it is absent, or when several contradict each other."""
        values = [value for known, value in self.headers if known == name.lower()]
        return values[0] if len(values) == 1 else None

    @property
    def content_type(self) -> content_types.ContentType:
        """The type the body is said to have."""
        return content_types.ContentType.parse(self.header("content-type") or "")


_SCHEME = re.compile(r"\A(?:sha256|v[0-9])=")
"""The prefix some senders write before the signature; base64 may end like it."""
_LONGEST_TIMESTAMP = 12


def is_genuine(
    webhook: trigger_kinds.Webhook, secrets: Sequence[str], delivery: Delivery, now: datetime
) -> bool:
    """True when one of the secrets verifies the call; with the auth `none` every call passes."""
    if webhook.auth == "none":
        return True
    if webhook.auth == "basic":
        return _any_equal([secret.encode() for secret in secrets], _password(delivery))
    if webhook.auth == "header":
        shown = _shown(delivery, webhook.header or trigger_kinds.SECRET_HEADER)
        return _any_equal([secret.encode() for secret in secrets], shown)
    verify = _standard if webhook.signing.scheme == "standard_webhooks" else _hmac
    return verify(webhook.signing, secrets, delivery, now)


def _standard(
    signature: trigger_kinds.Signature, secrets: Sequence[str], delivery: Delivery, now: datetime
) -> bool:
    message_id = delivery.header("webhook-id")
    timestamp = delivery.header("webhook-timestamp")
    signatures = delivery.header("webhook-signature")
    if not message_id or not signatures or not _is_timely(timestamp, signature, now):
        return False
    content = f"{message_id}.{timestamp}.".encode("latin-1") + delivery.body
    expected = [base64.b64encode(_digest(_standard_key(secret), content)) for secret in secrets]
    given = [text[3:].encode() for text in signatures.split(" ") if text.startswith("v1,")]
    return _any_equal(expected, given)


def _hmac(
    signature: trigger_kinds.Signature, secrets: Sequence[str], delivery: Delivery, now: datetime
) -> bool:
    value = delivery.header(signature.header or "")
    if not value:
        return False
    timestamp, signatures = _read(signature, delivery, value)
    if signature.timestamp_header is not None and not _is_timely(timestamp, signature, now):
        return False
    before, _, after = signature.content.replace("{timestamp}", timestamp or "").partition("{body}")
    content = before.encode() + delivery.body + after.encode()
    digests = [_digest(secret.encode(), content) for secret in secrets]
    if signature.encoding == "hex":
        expected = [digest.hex().encode() for digest in digests]
        return _any_equal(expected, [text.lower().encode() for text in signatures])
    return _any_equal(
        [base64.b64encode(one) for one in digests], [text.encode() for text in signatures]
    )


def _read(
    signature: trigger_kinds.Signature, delivery: Delivery, value: str
) -> tuple[str | None, list[str]]:
    """The timestamp and the signatures of a call."""
    name = signature.timestamp_header
    if name is None or name.lower() != (signature.header or "").lower():
        return delivery.header(name) if name else None, [_SCHEME.sub("", value)]
    parts = [part.strip().partition("=") for part in value.split(",")]
    timestamps = [text for key, _, text in parts if key == "t"]
    return timestamps[0] if len(timestamps) == 1 else None, [
        text for key, _, text in parts if key.startswith("v")
    ]


def _is_timely(timestamp: str | None, signature: trigger_kinds.Signature, now: datetime) -> bool:
    """True when seconds since the epoch lie within the tolerance, both ways."""
    if timestamp is None or len(timestamp) > _LONGEST_TIMESTAMP:
        return False
    if not (timestamp.isascii() and timestamp.isdigit()):
        return False
    return abs(now.timestamp() - int(timestamp)) <= signature.tolerance_seconds


def _standard_key(secret: str) -> bytes:
    """The bytes behind `whsec_`; a secret that is not base64 is its own key."""
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return secret.encode()


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _password(delivery: Delivery) -> list[bytes]:
    scheme, _, encoded = (delivery.header("authorization") or "").partition(" ")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return []
    _, colon, password = decoded.partition(b":")
    return [password] if colon and scheme.lower() == "basic" else []


def _shown(delivery: Delivery, header: str) -> list[bytes]:
    value = delivery.header(header)
    if value is None:
        return []
    if header.lower() == "authorization" and value[:7].lower() == "bearer ":
        value = value[7:]
    return [value.encode("latin-1")]


def _any_equal(expected: Sequence[bytes], given: Sequence[bytes]) -> bool:
    """True when a given signature is an expected one. Every pair is compared, in constant time."""
    return any([hmac.compare_digest(one, other) for one in expected for other in given])  # noqa: C419  # all of them


_BY_DEFAULT = (
    trigger_kinds.Deduplication(source="header", name="webhook-id"),
    trigger_kinds.Deduplication(source="header", name="idempotency-key"),
)
"""Headers unique to a message by Standard Webhooks, to a request by the Idempotency-Key draft."""


def lets_through(webhook: trigger_kinds.Webhook, payload: JsonObject, now: datetime) -> bool:
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


def unmet_term(webhook: trigger_kinds.Webhook, payload: JsonObject, now: datetime) -> JsonObject:
    """The term of the filter that the payload does not meet, with the value it met."""
    variables: JsonObject = {"trigger": payload}

    def holds(part: object) -> bool:
        if isinstance(part, dict):
            return matches(part, variables, now)
        return saved_expression(str(part)).evaluate(variables) is True

    return failed_term(webhook.filter, holds, variables)


def kept_call(payload: JsonObject, delivery: Delivery, secrets: Sequence[str]) -> JsonObject:
    """The payload of a call as the inbox keeps it: without what may be a secret."""
    raw = delivery.query + delivery.body
    if any(secret and secret.encode() in raw for secret in secrets):
        payload = Redaction(dict.fromkeys(secrets, REDACTED)).value(payload)
    return _without_named_secrets(payload)


def _without_named_secrets(payload: JsonObject) -> JsonObject:
    """The payload of a call without what its senders name as secrets."""
    parts = {part: without_named_secrets(payload[part]) for part in ("headers", "query", "body")}
    if payload.get("bodyEncoding") == "base64" and _encodes_named_secret(payload["body"]):
        parts["body"] = REDACTED
    return {**payload, **parts}


def _encodes_named_secret(body: str) -> bool:
    """True for bytes in base64 that name a secret, in a charset that is ASCII or wider."""
    try:
        text = base64.b64decode(body).decode("latin-1").replace("\0", "")
    except binascii.Error:
        # A part of it is left out already.
        return True
    return without_named_secrets(text) != text


MAX_EXCERPT = 4_096
"""Bytes of the body of a refused call that are kept, as text."""


def refused_call(
    webhook: trigger_kinds.Webhook | None, delivery: Delivery, secrets: Sequence[str]
) -> JsonObject:
    """A call that was refused, as the inbox keeps it; what cannot be read is text."""
    try:
        query: object = _fields(delivery.query, "query")
    except ValidationError:
        query = {}
    whole = len(delivery.body) <= MAX_PAYLOAD
    try:
        body, encoding = _body(delivery) if whole else (None, None)
    except ValidationError:
        whole = False
    if not whole:
        text = delivery.body[:MAX_EXCERPT].decode("utf-8", "replace").replace("\x00", "\ufffd")
        body, encoding = text, "text"
    payload: JsonObject = {
        "method": delivery.method,
        "headers": _safe_headers(webhook, delivery),
        "query": query,
        "body": body,
        "bodyEncoding": encoding,
        "webhookId": delivery.header("webhook-id"),
    }
    return _without_named_secrets(Redaction(dict.fromkeys(secrets, REDACTED)).value(payload))


def deduplication(
    webhook: trigger_kinds.Webhook, delivery: Delivery
) -> trigger_kinds.Deduplication | None:
    """The deduplication of calls: as configured, or else by a standard header of the call."""
    given = (how for how in _BY_DEFAULT if delivery.header(str(how.name)))
    return webhook.dedupe or next(given, None)


def call_key(
    rule: trigger_kinds.Deduplication, delivery: Delivery, payload: JsonObject
) -> bytes | None:
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


def read_payload(webhook: trigger_kinds.Webhook, delivery: Delivery) -> JsonObject:
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


def _safe_headers(webhook: trigger_kinds.Webhook | None, delivery: Delivery) -> JsonObject:
    """The headers, except credentials, signatures and headers that look like them."""
    hidden = {trigger_kinds.SECRET_HEADER.lower()}
    if webhook is not None:
        hidden |= {(webhook.header or "").lower(), (webhook.signing.header or "").lower()}
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
    if content_type.media_type == FORM_DATA:
        said = delivery.header("content-type") or ""
        return _by_name(form_pairs(said, delivery.body)), "form"
    return content_types.as_text_or_base64(content_type, delivery.body)


def _json(content_type: content_types.ContentType, body: bytes) -> JsonValue:
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


FORM_DATA = "multipart/form-data"

_LONGEST_BOUNDARY = 70
_MOST_PARTS = 1_000
_MOST_HEADERS = 16
_LONGEST_HEADER = 8_192
_CHARSET = "_charset_"
"""The field that names the charset of the others (RFC 7578, 4.6)."""
_CODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64decode,
    "quoted-printable": quopri.decodestring,
}


@dataclass(slots=True)
class _Part:
    headers: dict[str, str] = field(default_factory=dict)
    content: bytearray = field(default_factory=bytearray)


def form_pairs(content_type: str, body: bytes) -> Sequence[tuple[str, JsonValue]]:
    """The fields of a form in their order. Raises ValidationError.

    A file is `{name, mimeType, byteSize, base64}`, and so is what is no text, without a name.
    """
    boundary = content_types.parameters_of(content_type)[1].get("boundary", "")
    if not 1 <= len(boundary) <= _LONGEST_BOUNDARY or not boundary.isascii():
        raise ValidationError.at("Content-Type", "The form names no boundary.")
    named = [(*_naming(part), part) for part in _parts(boundary.encode(), body)]
    stated = (bytes(part.content) for name, _, part in named if name == _CHARSET)
    charset = content_types.known_charset(next(stated, b"")[:40].decode("latin-1"))
    return [(name, _part_value(part, filename, charset)) for name, filename, part in named]


def _parts(boundary: bytes, body: bytes) -> Sequence[_Part]:
    reader = _Reader()
    # Text before the first boundary is for readers of mail (RFC 2046, 5.1.1).
    opening = b"--" + boundary
    start = 0 if body.startswith(opening) else body.find(b"\r\n" + opening) + 2
    if start == 1:
        raise _broken("The form does not begin with its boundary.")
    try:
        reader.parser(boundary).write(body[start:])
    except FormParserError:
        raise _broken("The form is malformed.") from None
    if not reader.is_whole:
        raise _broken("The form ends before its last boundary.")
    return reader.parts


class _Reader:
    """Collects the parts of a form."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.is_whole = False
        self._name = self._text = b""

    def parser(self, boundary: bytes) -> MultipartParser:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_part_data": self._data,
                "on_end": self._end,
            },
            max_header_count=_MOST_HEADERS,
            max_header_size=_LONGEST_HEADER,
        )

    def _begin(self) -> None:
        if len(self.parts) == _MOST_PARTS:
            raise _broken(f"A form has at most {_MOST_PARTS:,} parts.")
        self.parts.append(_Part())

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._text += data[start:end]

    def _header_end(self) -> None:
        name, self._name = self._name.decode("latin-1").lower(), b""
        text, self._text = self._text, b""
        try:
            self.parts[-1].headers.setdefault(name, text.decode())
        except UnicodeDecodeError:
            self.parts[-1].headers.setdefault(name, text.decode("cp1252", "backslashreplace"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self.parts[-1].content += data[start:end]

    def _end(self) -> None:
        self.is_whole = True


def _naming(part: _Part) -> tuple[str, str | None]:
    """The name of a part, and that of its file if it is one."""
    disposition, given = content_types.parameters_of(part.headers.get("content-disposition", ""))
    name = _part_name(given, "name")
    if disposition != "form-data" or name is None:
        raise _broken("A part of the form has no name.")
    return name, _part_name(given, "filename")


def _part_name(given: Mapping[str, str], key: str) -> str | None:
    name = content_types.part_parameter(given, key)
    if name is not None and "\x00" in name:
        raise _broken("A name of the form has a NUL.")
    return name


def _part_value(part: _Part, filename: str | None, charset: str | None) -> JsonValue:
    content = _decoded(part)
    declared = part.headers.get("content-type", "")
    said = content_types.ContentType.parse(declared or "text/plain")
    if filename is None:
        text = content_types.ContentType(said.media_type, said.charset or charset).decode(content)
        if text is not None:
            return text
    described: JsonObject = {
        "name": filename,
        "mimeType": declared or "application/octet-stream",
        "byteSize": len(content),
        "base64": base64.b64encode(content).decode(),
    }
    return described


def _decoded(part: _Part) -> bytes:
    """The bytes of a part, which old senders write in other ones (RFC 7578, 4.7)."""
    coding = part.headers.get("content-transfer-encoding", "").strip().lower()
    try:
        return _CODINGS.get(coding, bytes)(bytes(part.content))
    except (binascii.Error, ValueError):
        raise _broken(f"A part of the form is not written in {coding}.") from None


def _broken(message: str) -> ValidationError:
    return ValidationError.at("body", message)
