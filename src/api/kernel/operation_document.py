"""The OpenAPI document of one operation: what FastAPI reads from its signature, and the rest."""

import inspect
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar, get_args

from fastapi.routing import APIRoute
from pydantic import BaseModel

from api.kernel.error_document import PREFIX, union_name
from api.kernel.operation import Endpoint, Operation, spread
from api.kernel.parameters import WAIT_SECONDS
from api.kernel.response_headers import of_refusals
from api.kernel.routing import Route
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

T = TypeVar("T")

_JSON = "application/json"

_SECURITY: Mapping[str, list[dict[str, list[str]]]] = {
    "any": [{"apiKey": []}, {"session": []}],
    "key": [{"apiKey": []}],
    "session": [{"session": []}],
    "none": [],
}


class Data(BaseModel, Generic[T]):
    """The envelope of a success (interface, general rule 2)."""

    data: T


class DocumentedRoute(APIRoute):
    """A route as FastAPI documents it. Raises RuntimeError if it reads another body than we."""

    def __init__(self, route: Route) -> None:
        self.route = route
        operation = self.operation = route.operation
        endpoint = _described(operation)
        summary, _, description = (endpoint.__doc__ or "").strip().partition("\n")
        super().__init__(
            route.path,
            endpoint,
            response_model=_answered(operation),
            methods=[operation.method],
            status_code=operation.status,
            tags=list(route.tags),
            operation_id=operation.name,
            summary=summary.removesuffix("."),
            description=" ".join(description.split()) or None,
            response_description="Done",
        )
        bodies = [field.name for field in self.dependant.body_params]
        if bodies != ([operation.body.name] if operation.body else []):
            raise RuntimeError(f"FastAPI takes {bodies} for the body of {operation.name}.")
        self.responses = _documented_responses(route)
        self.openapi_extra = _documented_request(route)


def _described(operation: Operation) -> Endpoint:
    """The endpoint; for one with a query shape, one with the signature that FastAPI can read."""
    endpoint, shape = operation.endpoint, operation.query_shape
    if shape is None:
        return endpoint

    async def described() -> None:
        """Stand for the endpoint in the document."""

    signature = inspect.signature(endpoint, eval_str=True)
    parameters = spread(signature, shape).values()
    described.__doc__ = endpoint.__doc__
    described.__name__ = endpoint.__name__
    described.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    return described


def _answered(operation: Operation) -> object:
    """The shape of the answer; None where it is no JSON."""
    if operation.result is None:
        return None
    (shape,) = get_args(inspect.signature(operation.endpoint, eval_str=True).return_annotation)
    return Data.__class_getitem__(shape)


def _documented_responses(route: Route) -> dict[int | str, dict[str, Any]]:
    """The refusals, and the successes that are no JSON or have a status of their own.

    A further success of a shape, which has no content here, has that of the first.
    """
    operation, media_type = route.operation, route.media_type
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": ", ".join(refusal.code for refusal in refusals),
            "headers": of_refusals(refusals),
            "content": {_JSON: {"schema": {"$ref": PREFIX + union_name(refusals)}}},
        }
        for status, refusals in refusals_of(route).items()
    }
    if operation.result is None or media_type != _JSON:
        responses[operation.status] = {"content": {media_type: {}}}
    for status in route.statuses:
        same = operation.result is not None and media_type == _JSON and not operation.access.raw
        if same:
            responses[status] = {"description": "Done before"}
        else:
            responses[status] = {"content": {} if status == 304 else {media_type: {}}}
    return responses


def _documented_request(route: Route) -> dict[str, Any]:
    """Credentials, path parameters, headers, and a body that is no JSON shape."""
    operation, access = route.operation, route.operation.access
    parameters = [_path_parameter(name) for name in operation.parameters]
    if access.idempotent:
        parameters.append(_IDEMPOTENCY_KEY)
    if access.prefers:
        parameters.append(_PREFER)
    if access.upload:
        parameters.append(_FILE_NAME)
    conditional = (("If-None-Match",), 304), (("Range", "If-Range"), 206)
    names = [name for group, status in conditional if status in route.statuses for name in group]
    parameters += [_header(name, _READ_HEADERS[name]) for name in (*names, *route.headers)]
    found: dict[str, Any] = {"security": _SECURITY[access.credential], "parameters": parameters}
    if access.upload:
        found["requestBody"] = _UPLOAD
    if access.raw and not _is_read(operation):
        found["requestBody"] = _ANYTHING
    return found


def refusals_of(route: Route) -> dict[int, list[type[PlatformError]]]:
    """The errors that a route may answer by status, one of each code and in their order."""
    found: dict[int, dict[str, type[PlatformError]]] = {}
    for refusal in (*_refusals(route.operation), *route.errors):
        found.setdefault(refusal.status, {}).setdefault(refusal.code, refusal)
    return {
        status: [by_code[code] for code in sorted(by_code)]
        for status, by_code in sorted(found.items())
    }


def _refusals(operation: Operation) -> list[type[PlatformError]]:
    """The errors that every operation with these demands may answer."""
    access = operation.access
    refusals: list[type[PlatformError]] = [ValidationError, InternalError]
    if access.transaction:
        refusals += [UnavailableError, RateLimitedError]
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


def _header(name: str, description: str, **schema: object) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", **schema},
    }


_READ_HEADERS = {
    "If-None-Match": "The `ETag` of what the caller has: 304 says that it is still the same.",
    "Range": "A part of the file, such as `bytes=0-1023`; several get the whole file.",
    "If-Range": "The `ETag` that `Range` is meant for: of another file all of it is sent.",
    "X-Share-Token": "The token of the link; it takes one of its uses.",
    "X-Share-Session": "The session that an earlier call gave.",
    "Last-Event-ID": "The `seq` of the last event that was received, in place of `since`.",
}
"""The meaning of headers that operations read themselves."""

_IDEMPOTENCY_KEY = _header(
    HEADER,
    "Repeating a call with the same key within 24 hours gives the same answer.",
    minLength=1,
    maxLength=MAX_LENGTH,
)
_PREFER = _header(
    "Prefer",
    "`wait=30` answers with the ended run if it ends within 30 seconds, else with the run as it is"
    f" then; at most {WAIT_SECONDS} (RFC 7240).",
    example="wait=30",
)
_FILE_NAME = _header(NAME_HEADER, "What the file is called, percent-encoded.")

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
