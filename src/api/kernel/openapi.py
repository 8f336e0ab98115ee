"""The OpenAPI document: FastAPI's, with what the pipeline demands and answers of its own."""

import warnings
from collections.abc import Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from pydantic.alias_generators import to_pascal
from pydantic.warnings import UnsupportedFieldAttributeWarning

from api.kernel.error_document import error_components
from api.kernel.operation import Operation, wire_name
from api.kernel.operation_document import DocumentedRoute, refusals_of
from api.kernel.response_headers import HEADERS, of_success
from api.kernel.routing import Route

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
    "description": "Which workspace a session means; a key means its own.",
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
    schemas.update(error_components(groups))
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


def _from_fastapi(routes: Sequence[DocumentedRoute]) -> dict[str, Any]:
    with warnings.catch_warnings():
        # FastAPI gives shapes the names of its parameters, and keeps quiet about it where they are
        # built; those that are built at their first use are built here.
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        return get_openapi(
            title=TITLE,
            version=VERSION,
            openapi_version="3.1.0",
            summary="Workspaces whose long work is durable.",
            servers=[{"url": "/", "description": "The server this document was read from."}],
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
    success = described["responses"][str(operation.status)]
    if operation.result is None:
        success["content"] = dict(route.responses[operation.status]["content"])
    for status, answer in route.responses.items():
        if "content" not in answer:
            described["responses"][str(status)]["content"] = success["content"]
    if "422" not in route.responses and 422 not in route.responses:
        described["responses"].pop("422", None)
