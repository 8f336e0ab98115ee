"""Builds the first HTTP request of a call: method, headers and body."""

import json
import re
from typing import Any
from urllib.parse import urlencode

from runtime.outbound.errors import InvalidRequestError
from runtime.outbound.messages import OutboundRequest
from runtime.outbound.redirects import Hop
from runtime.outbound.urls import parse_url

USER_AGENT = "workspace-platform/0.0.1"
MAX_HEADER_BYTES = 32 * 1024
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# Framing and routing belong to the client: a caller who sets them can smuggle a second request.
_RESERVED = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def first_hop(request: OutboundRequest) -> Hop:
    """The first request to send. Raises InvalidUrlError and InvalidRequestError."""
    method = request.method.upper()
    if method not in _METHODS:
        raise InvalidRequestError(f"The method must be one of {', '.join(sorted(_METHODS))}.")
    headers = _headers(request)
    content, content_type = _content(request.body, headers.get("content-type"))
    if content_type is not None:
        headers.setdefault("content-type", content_type)
    headers.setdefault("accept", "*/*")
    headers.setdefault("accept-encoding", "gzip, deflate")
    headers.setdefault("user-agent", USER_AGENT)
    return Hop(method, parse_url(request.url, request.query), headers, content)


def _headers(request: OutboundRequest) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(lower) or lower in _RESERVED:
            raise InvalidRequestError(f"The header {name!r} cannot be set.")
        if not _VALUE.fullmatch(value):
            raise InvalidRequestError(f"The header {name!r} holds a character HTTP does not allow.")
        headers[lower] = value.strip()
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise InvalidRequestError(f"The headers are larger than {MAX_HEADER_BYTES} bytes.")
    return headers


def _content(body: object, declared: str | None) -> tuple[bytes | None, str | None]:
    if body is None or isinstance(body, bytes):
        return body, None
    media_type = (declared or JSON).partition(";")[0].strip().lower()
    is_json = media_type == JSON or media_type.endswith("+json")
    try:
        if isinstance(body, dict) and media_type == FORM:
            return urlencode(_fields(body), doseq=True).encode(), None
        if isinstance(body, str) and not is_json:
            return body.encode(), None
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode(), JSON
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequestError(f"The body cannot be written as {media_type}.") from None


def _fields(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of a form: nulls are left out, a list is a field that comes several times."""
    return {name: _field(value) for name, value in body.items() if value is not None}


def _field(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return [_field(item) for item in value]
    if isinstance(value, dict):
        raise TypeError
    return value
