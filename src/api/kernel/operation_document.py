"""The OpenAPI document of one operation beyond what FastAPI reads from its signature."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from api.kernel.operation import Operation
from api.kernel.response_headers import of_refusals
from api.kernel.uploads import NAME_HEADER
from models.core.idempotency.rules import HEADER, MAX_LENGTH
from models.people.release_notices.rules import ReleaseChannel
from runtime.errors import (
    ConflictingMutationError,
    DeniedError,
    InProgressError,
    InternalError,
    NotFoundError,
    PayloadTooLargeError,
    PlatformError,
    RateLimitedError,
    RequestTimeoutError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedMediaTypeError,
    ValidationError,
)

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}

_SECURITY: Mapping[str, list[dict[str, list[str]]]] = {
    "any": [{"apiKey": []}, {"session": []}],
    "key": [{"apiKey": []}],
    "session": [{"session": []}],
    "none": [],
}


def documented_responses(
    operation: Operation,
    errors: Sequence[type[PlatformError]],
    media_type: str,
    statuses: Sequence[int],
) -> dict[int | str, dict[str, Any]]:
    """The refusals, and the successes that are no JSON or have a status of their own.

    A further success of a shape, which has no content here, has that of the first.
    """
    refusals: dict[int, dict[str, type[PlatformError]]] = {}
    for refusal in (*_refusals(operation), *errors):
        refusals.setdefault(refusal.status, {}).setdefault(refusal.code, refusal)
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": ", ".join(sorted(by_code)),
            "headers": of_refusals([by_code[code] for code in sorted(by_code)]),
            "content": _ERROR,
        }
        for status, by_code in sorted(refusals.items())
    }
    if operation.result is None:
        responses[operation.status] = {"content": {media_type: {}}}
    for status in statuses:
        same = operation.result is not None and media_type in _ERROR and not operation.access.raw
        if same:
            responses[status] = {"description": "Done before"}
        else:
            responses[status] = {"content": {} if status == 304 else {media_type: {}}}
    return responses


def documented_request(operation: Operation) -> dict[str, Any]:
    """Credentials, path parameters, headers, and a body that is no JSON shape."""
    access = operation.access
    parameters = [_path_parameter(name) for name in operation.parameters]
    if access.idempotent:
        parameters.append(_IDEMPOTENCY_KEY)
    if access.upload:
        parameters.append(_FILE_NAME)
    found: dict[str, Any] = {"security": _SECURITY[access.credential], "parameters": parameters}
    if access.upload:
        found["requestBody"] = _UPLOAD
    if access.raw and not _is_read(operation):
        found["requestBody"] = _ANYTHING
    return found


def _refusals(operation: Operation) -> list[type[PlatformError]]:
    """The errors that every operation with these demands may answer."""
    access = operation.access
    refusals: list[type[PlatformError]] = [ValidationError, InternalError]
    if access.transaction:
        refusals.append(UnavailableError)
    if access.credential != "none":
        refusals += [UnauthorizedError, RateLimitedError]
    if access.scopes or access.level or access.platform_admin or access.credential in _NARROW:
        refusals.append(DeniedError)
    if operation.parameters or operation.chooses_workspace:
        refusals.append(NotFoundError)
    if not _is_read(operation):
        refusals += [RequestTimeoutError, PayloadTooLargeError, UnsupportedMediaTypeError]
    if access.idempotent:
        refusals += [InProgressError, ConflictingMutationError]
    return refusals


_NARROW = frozenset({"session", "key"})


def _is_read(operation: Operation) -> bool:
    """True when the method is one whose body means nothing (RFC 9110, 9.3)."""
    return operation.method in {"GET", "HEAD"}


_CHOICES: Mapping[str, type[StrEnum]] = {"channel": ReleaseChannel}
"""The values of a path parameter that has few."""


def _path_parameter(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if name.endswith("Id"):
        schema["format"] = "uuid"
    if name in _CHOICES:
        schema["enum"] = [choice.value for choice in _CHOICES[name]]
    return {"name": name, "in": "path", "required": True, "schema": schema}


_IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Repeating a call with the same key within 24 hours gives the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH},
}

_FILE_NAME = {
    "name": NAME_HEADER,
    "in": "header",
    "required": False,
    "description": "What the file is called, percent-encoded.",
    "schema": {"type": "string"},
}

_BYTES = {"type": "string", "format": "binary"}

_UPLOAD = {
    "description": "The bytes themselves under any type, or a form with one file.",
    "content": {
        "application/octet-stream": {"schema": _BYTES},
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"file": _BYTES},
                "required": ["file"],
                "additionalProperties": False,
            }
        },
    },
}

_ANYTHING = {
    "description": "Whatever the caller sends.",
    "content": {"application/json": {"schema": {}}, "application/octet-stream": {"schema": _BYTES}},
}
