"""The OpenAPI document says what every operation demands, and the application keeps to it."""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI

from api.routers.registry import ROUTERS
from models.core.access.rules import Level, Role, Scope
from models.core.base import Input
from tests.support.cells import cells
from tests.support.client import Client
from tests.support.document import DOCUMENT
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)


def _operations() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield pytest.param(method.upper(), path, operation, id=operation["operationId"])


def every_operation(check: Callable[[str, str, Any], None]) -> None:
    """Make a check of the method, the path and the description of each."""
    with cells() as cell:
        for path, methods in DOCUMENT["paths"].items():
            for method, operation in methods.items():
                with cell(operation["operationId"]):
                    check(method.upper(), path, operation)


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


@pytest.mark.long
def test_version_and_text_are_fixed(app: FastAPI) -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"]["version"] == "0.0.1"
    assert json.loads(json.dumps(app.openapi())) == DOCUMENT


def test_every_route_is_in_the_document_once() -> None:
    described = {(m.upper(), p) for p, methods in DOCUMENT["paths"].items() for m in methods}
    routed = [
        (route.operation.method, route.path)
        for router in ROUTERS
        for route in router.routes
        if route.is_documented
    ]
    assert set(routed) == described
    assert len(routed) == len(described)
    assert all(path.startswith("/v1/") for _, path in described), "the rest is no API"
    ids = [o["operationId"] for methods in DOCUMENT["paths"].values() for o in methods.values()]
    assert len(ids) == len(set(ids))


WITHOUT_SCOPE = {"resume_node", "list_share_links"}
"""Assignees of a node may answer in a session, and the command judges all others. Members with
access to an item see its other members."""


def test_operations_declare_their_access() -> None:
    every_operation(_declares_its_access)


def _declares_its_access(method: str, path: str, operation: dict[str, Any]) -> None:
    access = operation["x-access"]
    assert set(access) - {"anyScope"} == {
        "credential", "scopes", "itemLevel", "idempotent", "platformAdmin", "resource",
    }  # fmt: skip
    assert access["credential"] in {"any", "session", "key", "none"}
    assert set(access["scopes"]) <= set(Scope)
    assert access["itemLevel"] in {None, *(level.name.lower() for level in Level if level)}
    assert operation["summary"]
    assert len(operation["description"]) > len(operation["summary"])
    assert operation["security"] or access["credential"] == "none"
    needs_scope = path.startswith("/v1/workspaces/{") and access["credential"] != "none"
    needs_scope = needs_scope and operation["operationId"] not in WITHOUT_SCOPE
    assert access["scopes"] or not needs_scope, "nothing in a workspace is free to every member"
    declared = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
    assert declared == set(re.findall(r"{(\w+)}", path))
    if method == "GET":
        assert "requestBody" not in operation


def test_refusals_name_their_errors_as_constants() -> None:
    every_operation(_names_its_errors)
    assert "HTTPValidationError" not in DOCUMENT["components"]["schemas"]


def _names_its_errors(_method: str, _path: str, operation: dict[str, Any]) -> None:
    for status, response in operation["responses"].items():
        if status >= "400":
            refusal = _component("responses", response)
            union = refusal["content"]["application/json"]["schema"]
            errors = _errors_of(union)
            codes = [error["error"]["const"] for error in errors]
            assert refusal["description"] == ", ".join(codes)
            assert len(set(codes)) == len(codes)
            assert {str(error["status"]["const"]) for error in errors} == {status}
            assert all(error["_tag"]["const"].startswith("Api") for error in errors)


def _errors_of(union: Any) -> list[Any]:
    """The properties of the errors in a union, by which its discriminator tells them apart."""
    if "$ref" in union:
        union = _component("schemas", union)
    if "oneOf" not in union:
        return [union["properties"]]
    errors = [_component("schemas", one)["properties"] for one in union["oneOf"]]
    discriminator = union["discriminator"]
    told = [error[discriminator["propertyName"]]["const"] for error in errors]
    assert {discriminator["mapping"][value] for value in told} == {
        one["$ref"] for one in union["oneOf"]
    }
    return errors


def test_the_union_of_all_errors_has_each_that_an_operation_names() -> None:
    described = DOCUMENT["components"]["responses"].values()
    refusals = [one["description"] for one in described if "content" in one]
    named = {code for refusal in refusals for code in refusal.split(", ")}
    every = _errors_of({"$ref": "#/components/schemas/Error"})
    assert {error["error"]["const"] for error in every} == named


def _component(kind: str, reference: Any) -> Any:
    name = reference["$ref"].removeprefix(f"#/components/{kind}/")
    return DOCUMENT["components"][kind][name]


def _filled(path: str, space: Space) -> str:
    path = path.replace("{workspaceId}", str(space.id))
    return re.sub(r"{\w+Id}", str(uuid.uuid4()), path)


@dataclass
class Callers:
    """Who calls operations of `space`: its owner, strangers, and keys that lack scopes."""

    owner: Client
    stranger: Client
    removed: Client
    space: Space
    lacking: dict[frozenset[str], Client] = field(default_factory=dict)

    async def without(self, scopes: Iterable[str]) -> Client:
        """The owner's key with all other scopes."""
        missing = frozenset(scopes)
        if missing not in self.lacking:
            token = await self.space.key([one for one in Scope if one not in missing])
            self.lacking[missing] = self.owner.with_token(token)
        return self.lacking[missing]

    async def strangers_find_nothing(self, method: str, path: str, access: Any) -> None:
        target = _filled(path, self.space)
        assert (await self.owner.with_token(None).request(method, target)).status_code == 401
        if "{workspaceId}" in path:
            assert (await self.stranger.request(method, target)).status_code == 404
            assert (await self.removed.request(method, target)).status_code == 404
        elif access["resource"]:
            assert (await self.stranger.request(method, target)).status_code == 404

    async def scopes_are_needed(self, method: str, path: str, access: Any) -> None:
        target = _filled(path, self.space)
        if access["credential"] == "session":
            assert (await self.owner.request(method, target)).status_code == 403
            return
        for scopes in [*([one] for one in access["scopes"]), access.get("anyScope", [])]:
            if scopes:
                denied = await (await self.without(scopes)).request(method, target)
                assert denied.status_code == 403
                assert all(scope in denied.json()["message"] for scope in scopes)
        if access["platformAdmin"]:
            assert (await self.owner.request(method, target)).status_code == 403
        elif access["resource"]:
            assert (await self.owner.request(method, target)).status_code == 404


@pytest.mark.long
async def test_strangers_are_kept_out(client: Client, space: Space, foreign: Space) -> None:
    """The isolation matrix, as far as it needs no request body."""
    user_id, removed = await space.member(Role.OWNER)
    await space.remove(user_id)
    stranger = client.with_token(foreign.token)
    callers = Callers(client, stranger, client.with_token(removed), space)
    with cells() as cell:
        for method, path, operation in (one.values for one in _operations()):
            access = operation["x-access"]
            with cell(operation["operationId"]):
                if access["credential"] != "none":
                    await callers.strangers_find_nothing(method, path, access)
                    await callers.scopes_are_needed(method, path, access)
