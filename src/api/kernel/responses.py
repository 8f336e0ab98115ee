"""The JSON bodies of every answer: `{"data": …}`, or one shape of refusal (decisions C2)."""

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
import structlog
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import exc
from starlette.responses import Response

from runtime.database_failures import is_disk_full
from runtime.errors import (
    InternalError,
    PlatformError,
    StorageFullError,
    UnavailableError,
    ValidationError,
)
from runtime.object_store import has_no_room
from runtime.telemetry import describe

_UNREACHABLE = (
    exc.OperationalError,
    exc.InterfaceError,
    exc.TimeoutError,
    psycopg.OperationalError,
)

_log = structlog.get_logger(__name__)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Data(Generic[T]):
    """The envelope of a success (interface, general rule 2)."""

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


def error_response(error: PlatformError) -> Response:
    """The answer that tells this refusal."""
    body: dict[str, Any] = {
        "_tag": error.tag,
        "error": error.code,
        "message": error.message,
        "status": error.status,
    }
    if isinstance(error, ValidationError):
        body["details"] = [
            {"path": detail.path, "message": detail.message} for detail in error.details
        ]
    return Response(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status_code=error.status,
        headers=dict(error.headers),
        media_type="application/json",
    )


def as_refusal(error: Exception) -> PlatformError:
    """The refusal an exception amounts to; what nobody expected is logged and tells nothing."""
    if isinstance(error, PlatformError):
        return error
    if isinstance(getattr(error, "orig", error), psycopg.errors.QueryCanceled):
        _log.warning("statement_too_slow", **describe(error))
        return UnavailableError("This took too long, and nothing of it was done; ask for less.")
    if is_disk_full(error):
        _log.error("database_disk_full", **describe(error))
        return StorageFullError("database")
    if isinstance(error, OSError) and has_no_room(error):
        _log.error("disk_full", **describe(error))
        return StorageFullError("service")
    if isinstance(error, _UNREACHABLE):
        _log.warning("database_unavailable", **describe(error))
        return UnavailableError("The service cannot reach its database; try again soon.")
    _log.error("unexpected_error", **describe(error))
    return InternalError("Something went wrong on our side; the request id names it in our logs.")
