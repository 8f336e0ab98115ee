"""The OpenAPI document: what every operation takes, answers, refuses and demands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from pydantic.alias_generators import to_camel

from api.kernel.errors import ErrorBody
from api.kernel.operation import Operation
from api.kernel.uploads import NAME_HEADER
from models.core.idempotency.rules import HEADER, MAX_LENGTH
from runtime.errors import (
    ConflictingMutationError,
    DeniedError,
    InProgressError,
    InternalError,
    NotFoundError,
    PayloadTooLargeError,
    PlatformError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedMediaTypeError,
    ValidationError,
)

if TYPE_CHECKING:
    from api.kernel.routing import Route

TITLE = "Workspace Platform API"
VERSION = "0.0.1"

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}

_SECURITY_SCHEMES = {
    "apiKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "svc_sk_…",
        "description": "A workspace API key.",
    },
    "session": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A session of the identity provider.",
    },
}

_SECURITY: Mapping[str, list[dict[str, list[str]]]] = {
    "any": [{"apiKey": []}, {"session": []}],
    "key": [{"apiKey": []}],
    "session": [{"session": []}],
    "none": [],
}


def declare(
    route: "Route",
    operation: Operation,
    parameters: Sequence[str],
    errors: Sequence[type[PlatformError]],
    media_type: str,
    statuses: Sequence[int],
) -> None:
    """Write onto a route what FastAPI cannot read from its endpoint's signature."""
    refusals = [*_refusals(route, operation, parameters), *errors]
    codes: dict[int, list[str]] = {}
    for refusal in refusals:
        known = codes.setdefault(refusal.status, [])
        if refusal.code not in known:
            known.append(refusal.code)
    route.responses = {
        status: {"description": ", ".join(codes[status]), "content": _ERROR}
        for status in sorted(codes)
    }
    if operation.result is None:
        route.responses[operation.status] = {"content": {media_type: {}}}
    for status in statuses:
        route.responses[status] = {"content": {} if status == 304 else {media_type: {}}}
    documented = [_path_parameter(name) for name in parameters]
    if operation.access.idempotent:
        documented.append(_IDEMPOTENCY_KEY)
    if operation.access.upload:
        documented.append(_FILE_NAME)
    route.openapi_extra = {
        "security": _SECURITY[operation.access.credential],
        "parameters": documented,
        **({"requestBody": _UPLOAD} if operation.access.upload else {}),
        **({"requestBody": _ANYTHING} if operation.access.raw and not _is_read(route) else {}),
    }


def render(routes: Sequence["Route"]) -> dict[str, Any]:
    """The whole document."""
    document = get_openapi(
        title=TITLE,
        version=VERSION,
        openapi_version="3.1.0",
        summary="Workspaces whose long work is durable.",
        routes=routes,
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = _SECURITY_SCHEMES
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schema = ErrorBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs"))
    schemas["Error"] = schema
    components["schemas"] = dict(sorted(schemas.items()))
    for route in routes:
        for method in route.methods or ():
            _finish(route, document["paths"][route.path_format][method.lower()])
    return document


def _finish(route: "Route", described: dict[str, Any]) -> None:
    operation = route.operation
    described["x-access"] = operation.access.document()
    if described.get("description", "").removesuffix(".") == described["summary"]:
        del described["description"]
    parameters = described.get("parameters", [])
    for parameter in parameters:
        if parameter["in"] == "query":
            parameter["name"] = to_camel(parameter["name"])
            parameter["schema"].pop("title", None)
    if operation.chooses_workspace:
        parameters.append(_WORKSPACE_CHOICE)
    order = {"path": 0, "query": 1, "header": 2}
    described["parameters"] = sorted(parameters, key=lambda one: order[one["in"]])
    if operation.body is not None:
        described["requestBody"]["required"] = not operation.body.optional
    if operation.result is None:
        success = described["responses"][str(operation.status)]
        success["content"] = dict(route.responses[operation.status]["content"])
    if "422" not in route.responses and 422 not in route.responses:
        described["responses"].pop("422", None)


def _refusals(
    route: "Route", operation: Operation, parameters: Sequence[str]
) -> list[type[PlatformError]]:
    access = operation.access
    refusals: list[type[PlatformError]] = [ValidationError, InternalError]
    if access.transaction:
        refusals.append(UnavailableError)
    if access.credential != "none":
        refusals.append(UnauthorizedError)
    if access.scopes or access.level or access.platform_admin or access.credential in _NARROW:
        refusals.append(DeniedError)
    if parameters or operation.chooses_workspace:
        refusals.append(NotFoundError)
    if not _is_read(route):
        refusals += [PayloadTooLargeError, UnsupportedMediaTypeError]
    if access.idempotent:
        refusals += [InProgressError, ConflictingMutationError]
    return refusals


_NARROW = frozenset({"session", "key"})


def _is_read(route: "Route") -> bool:
    """Whether the method is one whose body means nothing (RFC 9110, 9.3)."""
    return (route.methods or set()) <= {"GET", "HEAD"}


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "format": "uuid"} if name.endswith("Id") else {"type": "string"}
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

_WORKSPACE_CHOICE = {
    "name": "workspaceId",
    "in": "query",
    "required": False,
    "description": "Which workspace a session means; a key means its own.",
    "schema": {"type": "string", "format": "uuid"},
}
