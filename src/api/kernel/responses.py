"""The JSON bodies of every answer, and the outermost layer: request ids, headers, last refusal."""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
import sqlalchemy as sa
import structlog
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.workspace.impact.deletions import BrokenPlaces, InUseError
from runtime import errors
from runtime.object_store import has_no_room
from runtime.observability.logs import describe
from runtime.postgresql.sessions import is_disk_full

_UNREACHABLE = (
    sa.exc.OperationalError,
    sa.exc.InterfaceError,
    sa.exc.TimeoutError,
    psycopg.OperationalError,
)

_log = structlog.get_logger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Data(Generic[T]):
    """The envelope of a success (interface.md#bodies)."""

    data: T


class ErrorDetail(BaseModel):
    """One thing that is wrong with the input."""

    path: str = Field(description="Where: camelCase keys and indexes joined by dots.")
    message: str


class ErrorBody(BaseModel):
    """The body of every refusal; each class of error fixes `_tag`, `error` and `status`."""

    model_config = ConfigDict(extra="forbid")

    tag: str = Field(alias="_tag")
    error: str
    message: str
    status: int


class ValidationErrorBody(ErrorBody):
    """The body of a refusal that says which places of the input are wrong."""

    details: list[ErrorDetail]


class InUseErrorBody(ErrorBody):
    """The body of the refusal of a deletion, with what it would break."""

    details: BrokenPlaces


BODIES: Mapping[type[errors.PlatformError], type[ErrorBody]] = {
    errors.ValidationError: ValidationErrorBody,
    InUseError: InUseErrorBody,
}
"""The bodies of errors that say more than others; their subclasses have the same."""


def error_response(error: errors.PlatformError) -> Response:
    """The answer that tells this refusal."""
    body: dict[str, Any] = {
        "_tag": error.tag,
        "error": error.code,
        "message": error.message,
        "status": error.status,
    }
    if isinstance(error, errors.ValidationError):
        body["details"] = [
            {"path": detail.path, "message": detail.message} for detail in error.details
        ]
    if isinstance(error, InUseError):
        body["details"] = error.details.model_dump(mode="json", by_alias=True)
    return Response(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status_code=error.status,
        headers=dict(error.headers),
        media_type="application/json",
    )


def as_refusal(error: Exception) -> errors.PlatformError:
    """The refusal an exception amounts to; what no one expected is logged and tells nothing."""
    if isinstance(error, errors.PlatformError):
        return error
    if isinstance(getattr(error, "orig", error), psycopg.errors.QueryCanceled):
        _log.warning("statement_too_slow", **describe(error))
        return errors.UnavailableError(
            "The request timed out and nothing was changed. Request less data."
        )
    if is_disk_full(error):
        _log.error("database_disk_full", **describe(error))
        return errors.StorageFullError("database")
    if isinstance(error, OSError) and has_no_room(error):
        _log.error("disk_full", **describe(error))
        return errors.StorageFullError("service")
    if isinstance(error, _UNREACHABLE):
        facts = describe(error)
        if facts.get("sqlstate") is None:
            # It was not reached. Each request of an outage logs this, and the place says nothing.
            del facts["stack"]
        _log.warning("database_unavailable", **facts)
        return errors.UnavailableError("The database is unavailable. Try again soon.")
    _log.error("unexpected_error", **describe(error))
    return errors.InternalError("Internal error. Report the request id if it persists.")


_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_NO_STORE = (b"cache-control", b"no-store")
_SAFE = {
    b"x-content-type-options": b"nosniff",
    # Some URLs carry a token: webhooks, assets, share links, invitations.
    b"referrer-policy": b"no-referrer",
}
"""On every answer, whatever it says itself: an automation may choose the headers of its own."""


def complete(headers: list[tuple[bytes, bytes]], request_id: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with the headers that every answer has."""
    whole = [one for one in headers if one[0] not in _SAFE]
    if not any(name == b"cache-control" for name, _ in whole):
        whole.append(_NO_STORE)
    return [*whole, (b"x-request-id", request_id), *_SAFE.items()]


class RequestContext:
    """Pure ASGI: it starts no task and no queue for a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or new_request_id()
        structlog.contextvars.bind_contextvars(request_id=request_id.decode())
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = complete(message["headers"], request_id)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if has_started:
                raise
            await error_response(as_refusal(error))(scope, receive, send_with_headers)


def new_request_id() -> bytes:
    """An id for a request that brings none."""
    return secrets.token_hex(16).encode()


def _given_id(scope: Scope) -> bytes | None:
    """The client's id, when it is one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            given: bytes = value
            return given
    return None


_LONGEST_HEADER = 1000


def prefers(media_type: str, accept: Sequence[bytes]) -> bool:
    """True when `Accept` names the type, and does not prefer JSON; a bare `*/*` means JSON."""
    weights = dict(map(_weighed, b",".join(accept)[:_LONGEST_HEADER].decode("latin-1").split(",")))
    weight = weights.get(media_type, 0.0)
    return weight > 0 and weight >= weights.get("application/json", 0.0)


def _weighed(one: str) -> tuple[str, float]:
    """A media range with its quality; one that cannot be read counts as not wanted."""
    media, *parameters = (part.strip().lower() for part in one.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return media, float(quality)
    except ValueError:
        return media, 0.0
