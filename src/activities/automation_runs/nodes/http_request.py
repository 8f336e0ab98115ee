"""The http_request node: one call through the outbound client, its answer saved if asked."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from activities.automation_runs.nodes.invocation import NodeResult, Outgoing
from models.automation.automation_runs.rules import NodeError
from models.automation.automations.rules.graph.configs import HttpAuth, HttpRequestConfig, SaveAs
from models.content.files.commands import new_object_key, save_file
from models.content.files.queries import FileRow, find_file
from models.content.files.rules import Content, file_name, media_type
from models.content.items.commands import check_parent
from models.core.access.rules import Role, Scope
from models.core.base import Id, JsonObject
from models.core.expressions.rules.json_values import MAX_DEPTH
from models.people.members import members_with
from runtime.content_types import as_text_or_base64, extended_parameter, parameters_of
from runtime.database import Database, UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import DeniedError, PlatformError
from runtime.object_store import ObjectStore, size_and_digest
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import InvalidBodyError, ResponseTooLargeError, UnknownCodingError
from runtime.outbound.messages import MEBIBYTE, OutboundRequest, OutboundResponse, authentication
from runtime.redaction import Redaction

MAX_SAVED_BYTES = 100 * MEBIBYTE
"""Bytes of an answer that is saved; an upload may have as many."""
_CHUNK = 1024 * 1024


class SavedAnswers:
    """Saves answers, each once: the id of its file is that of its node in its run and scope."""

    def __init__(self, database: Database, store: ObjectStore) -> None:
        self._database = database
        self._store = store

    async def send(
        self, outbound: OutboundClient, request: OutboundRequest, path: Path
    ) -> OutboundResponse:
        """Send a request, of whose answer the body is written to a file. Raises OutboundError."""
        with await asyncio.to_thread(path.open, "wb") as file:

            async def keep(chunk: bytes) -> None:
                await asyncio.to_thread(file.write, chunk)

            return await outbound.send(request, keep)

    async def check(self, outgoing: Outgoing, place: SaveAs) -> None:
        """Refuse, before anything is sent, what may not be saved there.

        Raises DeniedError, NotFoundError and ValidationError.
        """
        if Scope.FILES_WRITE not in outgoing.actor.scopes:
            raise DeniedError("Saving a response needs the scope files:write.")
        async with self._database.transaction() as work:
            await check_parent(work, outgoing.actor, place.parent_item_id)

    async def save(
        self, outgoing: Outgoing, place: SaveAs, answer: OutboundResponse, path: Path
    ) -> JsonObject:
        """`{fileId, name, mimeType, byteSize}` of the file, which an earlier attempt may have made.

        Raises what `check` raises, and NodeError for an answer that repeats a secret.
        """
        redaction = outgoing.redaction
        if redaction is not None and await asyncio.to_thread(_repeats, redaction, path):
            raise NodeError(
                "secret_repeated",
                "The response contains a secret from the request, so it was not saved.",
            )
        size, digest = await asyncio.to_thread(size_and_digest, path)
        key = new_object_key(outgoing.workspace_id)
        content = Content(
            name=file_name(place.name or _named(answer)),
            mime_type=media_type(answer.headers.get("content-type")),
            byte_size=size,
            sha256=digest,
            object_key=key,
        )
        # Before the row: an object without a row is removed later, a row without an object is
        # broken.
        await self._store.put_file(key, path)
        try:
            is_new = await self._recorded(outgoing, place, content)
        # The row was refused for good, so the object has no use; other errors are repeated.
        except PlatformError:
            await self._store.delete(key)
            raise
        if is_new:
            return _described(outgoing, content)
        # An earlier attempt has saved the answer under its own key.
        await self._store.delete(key)
        async with self._database.transaction() as work:
            earlier = await find_file(work, outgoing.workspace_id, _file_id(outgoing))
        return _described(outgoing, earlier or content)

    async def _recorded(self, outgoing: Outgoing, place: SaveAs, content: Content) -> bool:
        async with self._database.transaction() as work:
            return await save_file(
                work,
                outgoing.actor,
                content,
                file_id=_file_id(outgoing),
                user_id=await _maker(work, outgoing),
                parent_item_id=place.parent_item_id,
                placed="parent_item_id" in place.model_fields_set,
            )


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """A directory for the body of one answer."""
    return tempfile.TemporaryDirectory(prefix="workspace-answer-")


def _file_id(outgoing: Outgoing) -> Id:
    return derived_id("answer", outgoing.key)


def _described(outgoing: Outgoing, file: Content | FileRow) -> JsonObject:
    return {
        "fileId": str(_file_id(outgoing)),
        "name": file.name,
        "mimeType": file.mime_type,
        "byteSize": file.byte_size,
    }


async def _maker(work: UnitOfWork, outgoing: Outgoing) -> Id:
    """The person who started the run, else an owner of the workspace."""
    principal = outgoing.actor.principal
    if principal.user_id != principal.id:
        return principal.user_id
    return (await members_with(work, outgoing.workspace_id, Role.OWNER))[0]


def _repeats(redaction: Redaction, path: Path) -> bool:
    with path.open("rb") as file:
        pieces: Iterator[bytes] = iter(lambda: file.read(_CHUNK), b"")
        return redaction.stands_in(pieces)


def _named(answer: OutboundResponse) -> str:
    """The name that the answer has, else the last part of its address."""
    _, given = parameters_of(answer.headers.get("content-disposition", ""))
    name = extended_parameter(given, "filename") or given.get("filename")
    return name or unquote(urlsplit(answer.final_url).path.rpartition("/")[2])


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
    except (ResponseTooLargeError, UnknownCodingError) as error:
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
        # A repetition after a crash may send again what the server has already done.
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
    # Before the call: an answer that cannot be saved would be lost, with its effects done.
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
        raise NodeError("invalid_body", f"The response is nested deeper than {MAX_DEPTH} levels.")
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
        f"The server returned {response.status}.",
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
