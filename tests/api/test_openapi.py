"""The OpenAPI document says what every operation demands, and the application keeps to it."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from api.kernel.routing import Route
from api.openapi_file import openapi_text
from api.routers import ROUTERS
from models.core.access.rules import Level, Role, Scope
from models.core.base import Input
from tests.support.client import Client
from tests.support.document import DOCUMENT, TEXT
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)


def _operations() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield pytest.param(method.upper(), path, operation, id=operation["operationId"])


every_operation = pytest.mark.parametrize(("method", "path", "operation"), list(_operations()))


BODIES = [
    pytest.param(body["application/json"]["schema"]["$ref"].split("/")[-1], id=one.id)
    for one in _operations()
    if "/automation" in one.values[1]
    and (body := one.values[2].get("requestBody", {}).get("content"))
    and not one.values[1].endswith("/import")  # its body is what export answers
]


@pytest.mark.parametrize("name", BODIES)
def test_a_body_about_automations_has_an_example_that_is_valid(name: str) -> None:
    shapes = {shape.__name__: shape for shape in _inputs(Input)}
    (example,) = DOCUMENT["components"]["schemas"][name]["examples"]
    shapes[name].model_validate_json(json.dumps(example))


def _inputs(shape: type[Input]) -> Iterator[type[Input]]:
    for one in shape.__subclasses__():
        yield one
        yield from _inputs(one)


def test_version_and_text_are_fixed(app: FastAPI) -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"]["version"] == "0.0.1"
    assert openapi_text() == TEXT
    assert json.loads(json.dumps(app.openapi())) == DOCUMENT


def test_every_route_is_in_the_document_once(app: FastAPI) -> None:
    described = {(m.upper(), p) for p, methods in DOCUMENT["paths"].items() for m in methods}
    routed = [
        (method, route.path)
        for route in app.router.routes
        if isinstance(route, Route) and route.include_in_schema
        for method in route.methods or ()
    ]
    assert len(app.router.routes) == sum(len(router.routes) for router in ROUTERS)
    assert set(routed) == described
    assert len(routed) == len(described)
    assert all(path.startswith("/v1/") for _, path in described), "the rest is no API"
    ids = [o["operationId"] for methods in DOCUMENT["paths"].values() for o in methods.values()]
    assert len(ids) == len(set(ids))


WITHOUT_SCOPE = {"resume_node", "list_share_links"}
"""Whoever a node asks may answer in a session, and the command judges the others; whoever sees an
item sees who else does."""


@every_operation
def test_operations_declare_their_access(method: str, path: str, operation: dict[str, Any]) -> None:
    access = operation["x-access"]
    assert set(access) - {"anyScope"} == {
        "credential", "scopes", "itemLevel", "idempotent", "platformAdmin", "resource",
    }  # fmt: skip
    assert access["credential"] in {"any", "session", "key", "none"}
    assert set(access["scopes"]) <= set(Scope)
    assert access["itemLevel"] in {None, *(level.name.lower() for level in Level if level)}
    assert operation["summary"]
    assert operation["security"] or access["credential"] == "none"
    needs_scope = path.startswith("/v1/workspaces/{") and access["credential"] != "none"
    needs_scope = needs_scope and operation["operationId"] not in WITHOUT_SCOPE
    assert access["scopes"] or not needs_scope, "nothing in a workspace is free to every member"
    declared = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
    assert declared == set(re.findall(r"{(\w+)}", path))
    if method == "GET":
        assert "requestBody" not in operation


@every_operation
def test_refusals_have_the_envelope(method: str, path: str, operation: dict[str, Any]) -> None:  # noqa: ARG001
    for status, response in operation["responses"].items():
        if status >= "400":
            assert response["content"] == {
                "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
            }
    assert "HTTPValidationError" not in DOCUMENT["components"]["schemas"]


def _filled(path: str, space: Space) -> str:
    path = path.replace("{workspaceId}", str(space.id))
    return re.sub(r"{\w+Id}", str(uuid.uuid4()), path)


@every_operation
async def test_strangers_are_kept_out(
    client: Client, space: Space, foreign: Space, method: str, path: str, operation: dict[str, Any]
) -> None:
    """The isolation matrix, as far as it needs no request body (reliability D0)."""
    access = operation["x-access"]
    if access["credential"] == "none":
        return
    target = _filled(path, space)
    anonymous = await client.with_token(None).request(method, target)
    assert anonymous.status_code == 401
    stranger = client.with_token(foreign.token)
    user_id, removed = await space.member(Role.OWNER)
    await space.remove(user_id)
    if "{workspaceId}" in path:
        assert (await stranger.request(method, target)).status_code == 404
        assert (await client.with_token(removed).request(method, target)).status_code == 404
    elif access["resource"]:
        assert (await stranger.request(method, target)).status_code == 404
    if access["credential"] == "session":
        assert (await client.request(method, target)).status_code == 403
        return
    if "anyScope" in access:
        others = await space.key([s for s in Scope if s not in access["anyScope"]])
        denied = await client.with_token(others).request(method, target)
        assert denied.status_code == 403
        assert all(scope in denied.json()["message"] for scope in access["anyScope"])
    for scope in access["scopes"]:
        others = client.with_token(await space.key([s for s in Scope if s != scope]))
        denied = await others.request(method, target)
        assert denied.status_code == 403
        assert scope in denied.json()["message"]
    if access["platformAdmin"]:
        assert (await client.request(method, target)).status_code == 403
    elif access["resource"]:
        assert (await client.request(method, target)).status_code == 404
