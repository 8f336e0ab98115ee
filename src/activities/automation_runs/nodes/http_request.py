"""The http_request node: one call through the outbound client (decisions C6, C8, D2)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from activities.automation_runs.nodes.invocation import NodeResult, Outgoing
from activities.automation_runs.nodes.saved_answers import (
    MAX_SAVED_BYTES,
    SavedAnswers,
    scratch,
)
from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.graph.configs import HttpAuth, HttpRequestConfig, SaveAs
from models.core.base import JsonObject
from models.core.expressions.rules.json_values import MAX_DEPTH
from runtime.content_types import as_text_or_base64
from runtime.outbound.authentication import authentication
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import InvalidBodyError, ResponseTooLargeError
from runtime.outbound.messages import OutboundRequest, OutboundResponse

MAX_RESPONSE_BYTES = 1024 * 1024
"""A node's output is kept with its run; a larger answer fails the node."""

MAX_RETRY_AFTER = 86_400.0
"""Seconds that another server can make a node wait: the longest delay its own retry may have."""

QUOTED_CHARACTERS = 500
"""Characters of an unexpected answer that the node's error quotes."""
_NOTHING = frozenset({"", "null", "{}", "[]"})

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


async def http_request(
    outbound: OutboundClient, files: SavedAnswers, outgoing: Outgoing
) -> NodeResult:
    """`{status, headers, body, bodyEncoding}` of an expected answer; `file` in place of a body.

    Raises NodeError for any other status (4xx but 408/409/425/429 is final) and for a body that
    cannot be read, with what came of the answer, and OutboundError when there is no answer.
    """
    config = HttpRequestConfig.model_validate(outgoing.parameters)
    try:
        if config.save_as is not None:
            return await _saved(outbound, files, outgoing, config, config.save_as)
        response = await outbound.send(_request(config, outgoing.key, MAX_RESPONSE_BYTES))
    except ResponseTooLargeError as error:
        output = None if error.head is None else _output(*error.head)
        raise NodeError(error.code, error.message, output=output) from None
    if not config.expects(response.status):
        raise unexpected(response)
    try:
        body, encoding = response.content()
        return NodeResult(_output(response.status, response.headers, storable(body), encoding))
    except InvalidBodyError as error:
        raise NodeError(error.code, error.message, output=came(response)) from None
    except NodeError as error:
        error.output = came(response)
        raise


def _request(config: HttpRequestConfig, key: str, max_bytes: int) -> OutboundRequest:
    headers = {**config.headers, **_auth_headers(config.auth)}
    if config.method not in _SAFE_METHODS:
        headers.setdefault("Idempotency-Key", key)
    return OutboundRequest(
        method=config.method,
        url=config.url,
        headers=headers,
        query=config.query,
        body=config.body,
        timeout_seconds=config.timeout_seconds or 30,
        max_bytes=max_bytes,
    )


async def _saved(
    outbound: OutboundClient,
    files: SavedAnswers,
    outgoing: Outgoing,
    config: HttpRequestConfig,
    place: SaveAs,
) -> NodeResult:
    await files.check(outgoing, place)
    with scratch() as directory:
        path = Path(directory, "body")
        request = _request(config, outgoing.key, MAX_SAVED_BYTES)
        response = await files.send(outbound, request, path)
        if not config.expects(response.status):
            begin = await asyncio.to_thread(_beginning, path)
            raise unexpected(replace(response, body=begin))
        file = await files.save(outgoing, place, response, path)
    return NodeResult({**_output(response.status, response.headers), "file": file})


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_RESPONSE_BYTES)


def came(response: OutboundResponse) -> JsonObject:
    """The output of a node that fails on an answer: as of one that succeeds, if it can be read."""
    try:
        body, encoding = response.content()
        body = storable(body)
    except (InvalidBodyError, NodeError):
        raw = replace(response.content_type, media_type="text/plain")
        body, encoding = as_text_or_base64(raw, response.body)
    return _output(response.status, response.headers, body, encoding)


def _output(
    status: int,
    headers: Mapping[str, str],
    body: JsonValue = None,
    encoding: str | None = None,
) -> JsonObject:
    return {
        "status": status,
        "headers": storable(dict(headers)),
        "body": body,
        "bodyEncoding": encoding,
    }


def storable(value: JsonValue, depth: int = 0) -> JsonValue:
    """A JSON value as PostgreSQL keeps it: NUL and lone surrogates replaced by U+FFFD.

    Raises NodeError for one that nests deeper than a binding can read.
    """
    if depth > MAX_DEPTH:
        raise NodeError("invalid_body", f"The answer is nested deeper than {MAX_DEPTH} levels.")
    if isinstance(value, str):
        return _storable_text(value)
    if isinstance(value, list):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_storable_text(key): storable(item, depth + 1) for key, item in value.items()}
    return value


def _storable_text(text: str) -> str:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\x00", "\ufffd")


def unexpected(response: OutboundResponse) -> NodeError:
    """The failure an answer of this status is, with it: 4xx but 408, 409, 425 and 429 is final."""
    wait = response.retry_after
    return NodeError(
        f"http_{response.status}",
        f"The server answered {response.status}.",
        retryable=not 400 <= response.status < 500 or response.retryable,
        retry_after=None if wait is None else min(wait, MAX_RETRY_AFTER),
        quoted=_excerpt(response),
        output=came(response),
    )


def _excerpt(response: OutboundResponse) -> str:
    """The beginning of a response body, if it is text."""
    content_type = response.content_type
    if not (content_type.is_json or content_type.media_type == "text/plain"):
        return ""
    words = " ".join(_storable_text((response.text() or "")[:QUOTED_CHARACTERS]).split())
    return "" if words in _NOTHING else words


def _auth_headers(auth: HttpAuth | None) -> dict[str, str]:
    if auth is None:
        return {}
    match auth.type:
        case "bearer":
            credential = auth.token
        case "basic":
            credential = f"{auth.username}:{auth.password}"
        case _:
            credential = auth.value
    return authentication(auth.type, credential or "", auth.name)
