"""The order of checks: a request wrong in every way is answered with the first."""

import uuid
from typing import Any

import pytest

from api.kernel import authorization
from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Level, Placement, Role, Scope
from tests.support.client import Client
from tests.support.spaces import Space

TEXT = {"Content-Type": "text/plain"}
WRONG: dict[str, Any] = {"content": b"not json", "headers": TEXT}
EVERYTHING_BUT = [scope for scope in Scope if scope is not Scope.AUTOMATIONS_WRITE]


async def test_each_check_comes_before_the_next(
    probes: Client, probe_path: str, space: Space, foreign: Space
) -> None:
    nowhere = f"{foreign.path}/probes/{uuid.uuid4()}"
    poor = probes.with_token(await space.key(EVERYTHING_BUT))
    _, commenter_token = await space.member(Role.COMMENTER)
    unknown = f"{space.path}/probes/{uuid.uuid4()}"

    assert (await probes.with_token(None).post(nowhere, **WRONG)).status_code == 401
    assert (await poor.post(nowhere, **WRONG)).status_code == 415
    assert (await poor.post(nowhere, json={"zz": 1})).status_code == 404
    denied = await poor.post(unknown, json={"zz": 1})
    assert denied.status_code == 403
    assert "automations:write" in denied.json()["message"]
    assert (await probes.post(unknown, json={"zz": 1})).status_code == 404
    assert (await probes.post(probe_path, json={"zz": 1})).status_code == 400
    refused = await probes.post(probe_path, json={"name": "n", "raises": "conflict"})
    assert refused.status_code == 409
    assert (await probes.with_token(commenter_token).post(probe_path, json={})).status_code == 403


async def test_level_comes_after_visibility_and_before_shape(
    probes: Client, probe_path: str, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, editor = await space.member(Role.EDITOR)
    as_editor = probes.with_token(editor)
    expected = {Level.NONE: 404, Level.VIEW: 403, Level.RUN: 403, Level.EDIT: 400}
    for level, status in expected.items():

        async def restricted(*_: object, level: Level = level) -> Placement:
            return Placement(space.id, restricted=True, granted=level)

        monkeypatch.setitem(authorization.RESOURCES, "api_key", restricted)
        assert (await as_editor.post(probe_path, json={})).status_code == status
        assert (await probes.post(probe_path, json={})).status_code == 400


async def test_guests_see_nothing_that_was_not_granted(
    probes: Client, probe_path: str, space: Space
) -> None:
    _, guest = await space.member(Role.GUEST)
    assert (await probes.with_token(guest).get(space.path)).status_code == 200
    assert (await probes.with_token(guest).post(probe_path, json={})).status_code == 403


@pytest.mark.parametrize("bad", ["x", "%00", "%ff", "%0d%0a", "..%2f", "1" * 5000, "{}", "'"])
async def test_malformed_ids_are_unknown_ids(probes: Client, space: Space, bad: str) -> None:
    unknown = await probes.post(f"{space.path}/probes/{uuid.uuid4()}", json={})
    in_item = await probes.post(f"{space.path}/probes/{bad}", json={})
    assert in_item.status_code == 404
    if "%2f" not in bad:
        assert in_item.content == unknown.content
    assert (await probes.get(f"/v1/workspaces/{bad}")).status_code == 404


async def test_foreign_ids_look_like_unknown_ones(
    probes: Client, space: Space, foreign: Space
) -> None:
    as_foreigner = probes.with_token(foreign.token)
    listed = await as_foreigner.get(f"{foreign.path}/api-keys")
    foreign_key = listed.json()["data"][0]["id"]
    for template in (f"{space.path}/probes/{{}}", "/v1/probe-keys/{}"):
        method = "POST" if "workspaces" in template else "GET"
        real = await probes.request(method, template.format(foreign_key))
        random = await probes.request(method, template.format(uuid.uuid4()))
        assert real.status_code == 404
        assert real.content == random.content
    foreign_workspace = await probes.get(foreign.path)
    assert foreign_workspace.content == (await probes.get(f"/v1/workspaces/{uuid.uuid4()}")).content


async def test_a_resource_says_its_workspace(
    probes: Client, space: Space, foreign: Space, issuer: DevelopmentIssuer
) -> None:
    listed = await probes.get(f"{space.path}/api-keys")
    path = f"/v1/probe-keys/{listed.json()['data'][0]['id']}"
    assert (await probes.get(path)).json()["data"]["value"] == str(space.id)
    owner = probes.with_token(issuer.mint(space.email, "Test"))
    assert (await owner.get(path)).json()["data"]["value"] == str(space.id)
    assert (await probes.with_token(foreign.token).get(path)).status_code == 404
    poor = probes.with_token(await space.key([]))
    assert (await poor.get(path)).status_code == 403
    assert (await poor.get(f"/v1/probe-keys/{uuid.uuid4()}")).status_code == 403


async def test_a_list_without_a_workspace_in_its_path(
    probes: Client, space: Space, foreign: Space, issuer: DevelopmentIssuer
) -> None:
    owner = probes.with_token(issuer.mint(space.email, "Test"))
    assert (await probes.get("/v1/probes")).json()["data"]["value"]["workspaceId"] == str(space.id)
    assert (await owner.get("/v1/probes")).status_code == 400
    chosen = await owner.get("/v1/probes", params={"workspaceId": str(space.id)})
    assert chosen.json()["data"]["value"]["workspaceId"] == str(space.id)
    for client in (owner, probes):
        elsewhere = await client.get("/v1/probes", params={"workspaceId": str(foreign.id)})
        assert elsewhere.status_code == 404
    assert (await probes.with_token(await space.key([])).get("/v1/probes")).status_code == 403


async def test_an_operation_may_want_a_key_or_a_session(
    probes: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = probes.with_token(issuer.mint(space.email, "Test"))
    assert (await probes.get("/v1/keys-only")).status_code == 200
    assert (await session.get("/v1/keys-only")).status_code == 403
    assert (await probes.post("/v1/workspaces", json={"name": "x"})).status_code == 403
    assert (await probes.get("/v1/admin/probe")).status_code == 403
    assert (await session.get("/v1/admin/probe")).status_code == 403


async def test_a_get_cannot_write(probes: Client) -> None:
    assert (await probes.get("/v1/writes-in-a-get")).status_code == 500
