"""The OpenAPI document of the operations: FastAPI's, with what the pipeline demands and answers."""

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import Any, get_args

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.alias_generators import to_pascal
from pydantic.warnings import UnsupportedFieldAttributeWarning

from api.dry_runs import DryRunUnsupportedError, ProposalUnsupportedError, is_proposable
from api.kernel.operation import Endpoint, Operation, spread, wire_name
from api.kernel.request import WAIT_SECONDS
from api.kernel.response_headers import HEADERS, of_refusals, of_success
from api.kernel.responses import BODIES, ErrorBody
from api.kernel.routing import Route
from api.kernel.uploads import NAME_HEADER
from models.core.idempotency import HEADER, MAX_LENGTH
from models.people.release_notices import ReleaseChannel
from models.workspace.changes.shapes import ChangeSetSummary, DryRunChanges
from runtime import errors

TITLE = "Workspace Platform API"
VERSION = "0.0.1"

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

_WORKSPACE_CHOICE = {
    "name": "workspaceId",
    "in": "query",
    "required": False,
    "description": "The workspace, for a session. An API key has its own.",
    "schema": {"type": "string", "format": "uuid"},
}


def render(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document."""
    described = [DocumentedRoute(route) for route in routes if route.is_documented]
    document = _from_fastapi(described)
    components = document.setdefault("components", {})
    components["securitySchemes"] = _SECURITY_SCHEMES
    components["headers"] = HEADERS
    refusals: dict[str, Any] = {}
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    groups = (group for route in described for group in refusals_of(route.route).values())
    schemas.update(error_components(one for group in groups for one in group))
    schemas.update(_components_of(DryRunChanges) | _components_of(ChangeSetSummary))
    components["schemas"] = dict(sorted(schemas.items()))
    for route in described:
        method = route.operation.method
        operation = document["paths"][route.path_format][method.lower()]
        _finish(route, operation)
        _describe_headers(route, operation["responses"])
        _share_refusals(operation["responses"], refusals)
        if method == "PATCH":
            _drop_defaults(operation, schemas)
    components["responses"] = dict(sorted(refusals.items()))
    return document


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


def _from_fastapi(routes: Sequence[DocumentedRoute]) -> dict[str, Any]:
    with warnings.catch_warnings():
        # FastAPI renames shapes by its parameters, and hides that when it builds them; shapes that
        # are built at their first use are built here.
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        return get_openapi(
            title=TITLE,
            version=VERSION,
            openapi_version="3.1.0",
            summary="The API of the workspace platform.",
            servers=[{"url": "/", "description": "The server of this document."}],
            routes=routes,
        )


def _describe_headers(route: DocumentedRoute, responses: dict[str, Any]) -> None:
    headers = of_success(route.route, route.responses)
    for status, response in responses.items():
        if status < "400":
            response["headers"] = headers


def _share_refusals(responses: dict[str, Any], shared: dict[str, Any]) -> None:
    """Refusals are the same for many operations: each refers to a component, named by its codes."""
    for status, response in responses.items():
        if status >= "400":
            name = "Or".join(to_pascal(code) for code in response["description"].split(", "))
            if shared.setdefault(name, response) != response:
                raise RuntimeError(f"The document has two refusals with the name {name}.")
            responses[status] = {"$ref": f"#/components/responses/{name}"}


def _drop_defaults(described: dict[str, Any], schemas: dict[str, Any]) -> None:
    """A key that is left out of a change stays as it is; with defaults, clients send it."""
    content = described.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    body = schemas.get(reference.removeprefix("#/components/schemas/"), {})
    for one in body.get("properties", {}).values():
        one.pop("default", None)


def _never_null(content: dict[str, Any]) -> None:
    """A JSON body that may be an upload instead is optional to its endpoint, and never null."""
    shapes = content["schema"].get("anyOf", [])
    if {"type": "null"} in shapes:
        content["schema"] = shapes[0]


def _finish_query(operation: Operation, parameter: dict[str, Any]) -> None:
    name = parameter["name"]
    field = operation.query_fields.get(name)
    if field is not None and field.description:
        parameter["description"] = field.description
    parameter["name"] = wire_name(name)
    parameter["schema"].pop("title", None)
    for mark in operation.query[parameter["name"]].deprecated:
        parameter.update(mark.document())


def _finish(route: DocumentedRoute, described: dict[str, Any]) -> None:
    operation = route.operation
    described["x-access"] = operation.access.document()
    described["description"] = f"{described['description']} {operation.access.sentence()}"
    if operation.deprecated is not None:
        described |= operation.deprecated.document()
    parameters = described.get("parameters", [])
    for parameter in parameters:
        if parameter["in"] == "query":
            _finish_query(operation, parameter)
    if operation.chooses_workspace:
        parameters.append(_WORKSPACE_CHOICE)
    order = {"path": 0, "query": 1, "header": 2}
    described["parameters"] = sorted(parameters, key=lambda one: order[one["in"]])
    if operation.body is not None:
        described["requestBody"]["required"] = not operation.body.optional
        _never_null(described["requestBody"]["content"]["application/json"])
    _finish_responses(route, described["responses"])


def _finish_responses(route: DocumentedRoute, responses: dict[str, Any]) -> None:
    operation = route.operation
    success = responses[str(operation.status)]
    if operation.result is None:
        success["content"] = dict(route.responses[operation.status]["content"])
    elif _JSON in success["content"]:
        answer = success["content"][_JSON]
        answer["schema"] = _envelope(operation, answer["schema"])
    for status, answer in route.responses.items():
        if "content" not in answer:
            responses[str(status)]["content"] = success["content"]
    if "422" not in route.responses and 422 not in route.responses:
        responses.pop("422", None)


PREFIX = "#/components/schemas/"
_JSON = "application/json"

_SECURITY: Mapping[str, list[dict[str, list[str]]]] = {
    "any": [{"apiKey": []}, {"session": []}],
    "key": [{"apiKey": []}],
    "session": [{"session": []}],
    "none": [],
}


_CHANGES = {"changes": {"$ref": PREFIX + DryRunChanges.__name__}}


def _envelope(operation: Operation, data: dict[str, Any]) -> dict[str, Any]:
    """The body of a success (interface.md#bodies).

    `changes` are there in the response to `Prefer: dry-run` alone.
    """
    changes = _CHANGES if operation.takes_dry_runs else {}
    shape = {key: one for key, one in data.items() if key != "title"}
    done = {"type": "object", "properties": {"data": shape, **changes}, "required": ["data"]}
    accepts = operation.status == HTTPStatus.ACCEPTED and is_proposable(operation)
    return {"anyOf": [done, _TRIED_WORK]} if accepts else done


_TRIED_WORK = {
    "type": "object",
    "properties": {**_CHANGES, "proposal": {"$ref": PREFIX + ChangeSetSummary.__name__}},
    "required": ["changes"],
}
"""The answer of a dry run where work that is not started would give the data.

`proposal` is there in the response to `Prefer: propose`.
"""


def _components_of(shape: type[BaseModel]) -> dict[str, Any]:
    """The components of a shape and of its parts."""
    schema = shape.model_json_schema(ref_template=PREFIX + "{model}", mode="serialization")
    parts: dict[str, Any] = schema.pop("$defs", {})
    return {**parts, shape.__name__: schema}


def _described(operation: Operation) -> Endpoint:
    """The endpoint; for one with a query shape, one with the signature that FastAPI can read."""
    endpoint, shape = operation.endpoint, operation.query_shape
    if shape is None:
        return endpoint

    async def described() -> None:
        """Represent the endpoint in the document."""

    signature = inspect.signature(endpoint, eval_str=True)
    parameters = spread(signature, shape).values()
    described.__doc__ = endpoint.__doc__
    described.__name__ = endpoint.__name__
    described.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    return described


def _answered(operation: Operation) -> object:
    """The shape of the data that is answered; None where it is no JSON."""
    if operation.result is None:
        return None
    (shape,) = get_args(inspect.signature(operation.endpoint, eval_str=True).return_annotation)
    answered: object = shape
    return answered


def _documented_responses(route: Route) -> dict[int | str, dict[str, Any]]:
    """The refusals, and the successes that are no JSON or have a status of their own.

    A further success of a shape, which has no content here, has that of the first.
    """
    operation, media_type = route.operation, route.media_type
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": ", ".join(refusal.code for refusal in refusals),
            "headers": of_refusals(refusals),
            "content": {_JSON: {"schema": _any_of(refusals)}},
        }
        for status, refusals in refusals_of(route).items()
    }
    if operation.result is None or media_type != _JSON:
        responses[operation.status] = {"content": {media_type: {}}}
    if operation.takes_dry_runs and 202 not in {operation.status, *route.statuses}:
        responses[202] = {
            "description": "A proposal, or a dry run of what work would answer",
            "content": {_JSON: {"schema": _TRIED_WORK}},
        }
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
    if access.prefers or operation.takes_dry_runs:
        parameters.append(_preference(operation))
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


def refusals_of(route: Route) -> dict[int, list[type[errors.PlatformError]]]:
    """The errors that a route may answer by status, one of each code and in their order."""
    found: dict[int, dict[str, type[errors.PlatformError]]] = {}
    for refusal in (*_refusals(route.operation), *route.errors):
        found.setdefault(refusal.status, {}).setdefault(refusal.code, refusal)
    return {
        status: [by_code[code] for code in sorted(by_code)]
        for status, by_code in sorted(found.items())
    }


def _refusals(operation: Operation) -> list[type[errors.PlatformError]]:
    """The errors that every operation with these demands may answer."""
    access = operation.access
    refusals: list[type[errors.PlatformError]] = [errors.ValidationError, errors.InternalError]
    if access.transaction:
        refusals += [errors.UnavailableError, errors.RateLimitedError]
    if access.credential != "none":
        refusals += [errors.UnauthorizedError, errors.RateLimitedError]
    if access.scopes or access.level or access.platform_admin or access.credential in _NARROW:
        refusals.append(errors.DeniedError)
    if operation.parameters or operation.chooses_workspace:
        refusals.append(errors.NotFoundError)
    if not operation.reads and not operation.takes_dry_runs:
        refusals.append(DryRunUnsupportedError)
    if is_proposable(operation):
        refusals += [
            errors.ConflictError,
            errors.InProgressError,
            errors.ConflictingMutationError,
            errors.PayloadTooLargeError,
        ]
    elif not operation.reads:
        refusals.append(ProposalUnsupportedError)
    if not _is_read(operation):
        refusals += [
            errors.RequestTimeoutError,
            errors.PayloadTooLargeError,
            errors.UnsupportedMediaTypeError,
        ]
    if access.idempotent:
        refusals += [errors.InProgressError, errors.ConflictingMutationError]
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
    "If-None-Match": "The `ETag` of a cached copy: 304 if it is unchanged.",
    "Range": "A part of the file, such as `bytes=0-1023`. Multiple ranges return the whole file.",
    "If-Range": "Applies `Range` only if the `ETag` matches; else returns the whole file.",
    "X-Share-Token": "The token of the link. Counts as one visit.",
    "X-Share-Session": "The session from an earlier response.",
    "Last-Event-ID": "The `seq` of the last received event, instead of `since`.",
}
"""The meaning of headers that operations read themselves."""

_IDEMPOTENCY_KEY = _header(
    HEADER,
    "Repeating a request with the same key within 24 hours returns the same response.",
    minLength=1,
    maxLength=MAX_LENGTH,
)
_WAIT = (
    "`wait=30` waits up to 30 seconds for the run to end, and returns its current state. Maximum:"
    f" {WAIT_SECONDS} (RFC 7240)."
)
_DRY_RUN = "`dry-run` answers as without it, with `changes` beside `data`, and changes nothing."
_PROPOSE = "`propose` keeps the request for someone who may apply it (`workspace_changes:propose`)."


def _preference(operation: Operation) -> dict[str, Any]:
    texts = [_WAIT] if operation.access.prefers else []
    texts += [_DRY_RUN] if operation.takes_dry_runs else []
    texts += [_PROPOSE] if is_proposable(operation) else []
    example = "wait=30" if operation.access.prefers else "dry-run"
    return _header("Prefer", " ".join(texts), example=example)


_FILE_NAME = _header(NAME_HEADER, "The file name, percent-encoded.")

_BYTES = {"type": "string", "format": "binary"}

_UPLOAD = {
    "description": "The raw bytes with any type, or a form with one file.",
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
    "description": "Any body.",
    "content": {"application/json": {"schema": {}}, "application/octet-stream": {"schema": _BYTES}},
}

Refusal = type[errors.PlatformError]


def error_components(refusals: Iterable[Refusal]) -> dict[str, Any]:
    """The schemas of these errors, and of all.

    Errors of one code are one error to clients, even if they have several classes here.
    """
    by_code = {refusal.code: refusal for refusal in refusals}
    in_order = [by_code[code] for code in sorted(by_code)]
    schemas: dict[str, Any] = {}
    for refusal in in_order:
        schemas |= _one(refusal)
    return {**schemas, "Error": {"title": "Error", **_any_of(in_order)}}


def _name(refusal: Refusal) -> str:
    """The tag of an error; where a rule has a code of its own beside others of its tag, that."""
    by_tag = next(vars(one) for one in refusal.__mro__ if "tag" in vars(one))
    return refusal.tag if refusal.code == by_tag["code"] else f"Api{to_pascal(refusal.code)}"


def _one(refusal: Refusal) -> dict[str, Any]:
    body = next((shape for one, shape in BODIES.items() if issubclass(refusal, one)), ErrorBody)
    parts = _components_of(body)
    schema = parts.pop(body.__name__)
    fixed = {"_tag": refusal.tag, "error": refusal.code, "status": refusal.status}
    properties = {
        key: {**part, "const": fixed[key]} if key in fixed else part
        for key, part in schema["properties"].items()
    }
    text = " ".join((refusal.__doc__ or "").split())
    described = {"title": _name(refusal), "description": f"{text} {refusal.advice}".strip()}
    return {**parts, _name(refusal): {**schema, **described, "properties": properties}}


def _any_of(refusals: Sequence[Refusal]) -> dict[str, Any]:
    """Any of these errors, told apart by tag, or by code where two have one tag."""
    names = [_name(refusal) for refusal in refusals]
    if len(names) == 1:
        return {"$ref": PREFIX + names[0]}
    tags = [refusal.tag for refusal in refusals]
    key = "_tag" if len(set(tags)) == len(tags) else "error"
    values = tags if key == "_tag" else [refusal.code for refusal in refusals]
    return {
        "oneOf": [{"$ref": PREFIX + name} for name in names],
        "discriminator": {
            "propertyName": key,
            "mapping": {value: PREFIX + name for value, name in zip(values, names, strict=True)},
        },
    }
