"""API keys and the log of requests by their pages."""

import asyncio
import re

from fastapi import FastAPI

from api.console.workspace.api_keys import areas
from models.core.access.rules import Role, Scope
from tests.support.client import Client
from tests.support.settings_pages import (
    HOSTILE,
    Visit,
    assert_inert,
    commands_of,
    next_of,
    posted,
    sent,
    settings_of,
)
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, form_token

READ = {"scope.workspace:read": "on", "scope.automations:read": "on"}


async def keys_of(client: Client, space: Space) -> dict[str, dict[str, object]]:
    listed = await client.get(f"{space.path}/api-keys")
    return {one["name"]: one for one in listed.json()["data"]}


def test_every_scope_can_be_chosen_once() -> None:
    shown = [scope for _, nouns in areas() for noun in nouns for scope in noun.scopes]
    assert sorted(shown) == sorted(Scope)


async def test_a_key_is_shown_once(owner: Visitor, space: Space, client: Client) -> None:
    page, form = settings_of(space, "api-keys"), settings_of(space, "api-keys", "new")
    fields = {"name": HOSTILE, "lifetime": "30", **READ}
    answer = await posted(owner, form, page, fields)
    assert_inert(answer)
    assert answer.headers["cache-control"] == "no-store"
    (token,) = [one for one in commands_of(answer) if one.startswith("svc_sk_")]
    assert token not in str(answer.request.url)
    assert any(f"'{token}'\ncurl " in one for one in commands_of(answer))
    mine = await client.with_token(token).get("/v1/me/scopes")
    assert mine.json()["data"]["workspaces"][0]["scopes"] == ["workspace:read", "automations:read"]
    listed = await owner.get(page)
    assert_inert(listed)
    assert token not in listed.text
    assert token[:14] in listed.text
    key = (await keys_of(client, space))[HOSTILE]
    assert key["expiresAt"]


async def test_a_double_press_makes_one_key(owner: Visitor, space: Space, client: Client) -> None:
    page, form = settings_of(space, "api-keys"), settings_of(space, "api-keys", "new")
    shown = await owner.get(form)
    fields = {"csrfToken": form_token(shown), "idempotencyKey": form_key(shown)}
    fields |= {"name": "Pressed twice", "lifetime": "7", **READ}
    first, second = await asyncio.gather(*(owner.post(page, data=fields) for _ in range(2)))
    assert first.status_code == second.status_code == 200
    assert commands_of(first)[0] == commands_of(second)[0]
    assert second.headers["content-security-policy"] == first.headers["content-security-policy"]
    listed = await client.get(f"{space.path}/api-keys")
    assert [one["name"] for one in listed.json()["data"]].count("Pressed twice") == 1
    other = await owner.post(page, data={**fields, "name": "Another"})
    assert other.status_code in {409, 422}


async def test_presets_tick_what_the_person_has(visit: Visit, owner: Visitor, space: Space) -> None:
    form = settings_of(space, "api-keys", "new")
    ticked = r'<input type="checkbox" name="scope\.([^"]+)" checked\s*>'
    for visitor, missing in ((owner, set()), (await visit(Role.ADMIN), {"billing:manage"})):
        shown = await visitor.get(form, params={"preset": "all"})
        found = set(re.findall(ticked, shown.text))
        assert found == set(Scope) - (missing and {*missing, "workspace:delete"})
        shown = await visitor.get(form, params={"preset": "read"})
        assert set(re.findall(ticked, shown.text)) == {
            scope for scope in Scope if scope.endswith(":read")
        }
        assert not re.findall(ticked, (await visitor.get(form, params={"preset": "none"})).text)


async def test_a_key_gives_no_more_than_its_maker_has(visit: Visit, space: Space) -> None:
    admin = await visit(Role.ADMIN)
    page, form = settings_of(space, "api-keys"), settings_of(space, "api-keys", "new")
    fields = {"name": "More", "lifetime": "30", "scope.workspace:delete": "on"}
    answer = await posted(admin, form, page, fields)
    assert answer.status_code == 403
    assert "You can&#39;t grant scopes that you don&#39;t have" in answer.text


async def test_each_error_is_shown_beside_its_field(owner: Visitor, space: Space) -> None:
    page, form = settings_of(space, "api-keys"), settings_of(space, "api-keys", "new")
    for fields, words in (
        ({"name": "No scopes", "lifetime": "7"}, 'value="No scopes"'),
        ({"lifetime": "7", **READ}, 'name="scope.automations:read" checked'),
        ({"name": "For ever", "lifetime": "9999", **READ}, 'value="For ever"'),
        ({"name": "x", "lifetime": "7", "scope.everything": "on"}, 'value="x"'),
    ):
        answer = await posted(owner, form, page, fields)
        assert answer.status_code == 400
        assert words in answer.text
        assert 'class="fault"' in answer.text


async def test_a_key_is_revoked(owner: Visitor, space: Space, client: Client) -> None:
    page, form = settings_of(space, "api-keys"), settings_of(space, "api-keys", "new")
    answer = await posted(owner, form, page, {"name": "Brief", "lifetime": "never", **READ})
    token = next(one for one in commands_of(answer) if one.startswith("svc_sk_"))
    key_id = (await keys_of(client, space))["Brief"]["id"]
    path = settings_of(space, "api-keys", key_id, "revoke")
    assert await sent(owner, page, path) == f"{page}?notice=revoked"
    assert (await client.with_token(token).get("/v1/me")).status_code == 401
    assert "Brief" not in (await owner.get(page)).text
    assert "Brief" in (await owner.get(page, params={"state": "ended"})).text
    assert (await owner.get(page, params={"state": "x"})).status_code == 400


async def test_keys_are_paged(owner: Visitor, space: Space) -> None:
    for _ in range(35):
        await space.key()
    page, seen = settings_of(space, "api-keys"), 0
    target: str | None = page
    while target is not None:
        shown = await owner.get(target)
        seen += shown.text.count("svc_sk_")
        target = next_of(shown)
    assert seen == 36


async def test_calls_are_listed_with_their_callers(
    app: FastAPI, owner: Visitor, space: Space, client: Client
) -> None:
    for path in (f"{space.path}/automations", f"{space.path}/{HOSTILE}"):
        await client.get(path)
    await app.state.services.request_log.flush()
    page = settings_of(space, "request-logs")
    shown = await owner.get(page)
    assert "<img" not in shown.text
    assert f"{space.path}/automations" in shown.text
    assert "owner <span" in shown.text
    for _ in range(3):
        await client.get(f"{space.path}/automations")
    await app.state.services.request_log.flush()
    first = await owner.get(page, params={"limit": "1"})
    older = await owner.get(str(next_of(first)))
    assert older.status_code == 200
    assert (await owner.get(page, params={"cursor": "forged"})).status_code == 400


async def test_the_log_of_another_workspace_is_not_shown(
    app: FastAPI, owner: Visitor, client: Client, foreign: Space
) -> None:
    await client.with_token(foreign.token).get(f"{foreign.path}/automations")
    await app.state.services.request_log.flush()
    entries = await owner.get(settings_of(foreign, "request-logs"))
    assert entries.status_code == 404
