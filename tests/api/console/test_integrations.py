"""Pages of integrations: connected by a form, tested, shared, removed."""

import json
import re
from collections import defaultdict
from typing import Any

import pytest
from fastapi import FastAPI

from api.console.integrations.connecting import config_fields, config_of
from api.routers.registry import ROUTERS
from models.core.access.rules import Role
from models.sources.authorizations.rules import CALLBACK
from models.sources.connections.providers import PROVIDERS, ProviderName
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "<img src=x onerror=alert(1)>'\"{{7*7}}"
CANARY = "canary-7f3a"


def page_of(space: Space, *parts: object) -> str:
    return "/".join((f"/workspaces/{space.id}/integrations", *map(str, parts)))


async def connect(visitor: Visitor, space: Space, provider: str = "demo", **fields: str) -> Any:
    fields = {"provider": provider, "label": f"Ours {HOSTILE}", **fields}
    return await visitor.send_form(page_of(space, "connections"), page_of(space), None, **fields)


async def connected(visitor: Visitor, space: Space, **fields: str) -> str:
    """The path of a connection that was just made."""
    answer = await connect(visitor, space, **fields)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


@pytest.mark.parametrize("name", list(ProviderName))
async def test_every_provider_has_a_form_of_what_it_needs(
    space: Space, owner: Visitor, name: ProviderName
) -> None:
    answer = await owner.get(page_of(space, f"new?provider={name}"))
    assert answer.status_code == 200
    for credential in PROVIDERS[name].credentials:
        assert re.search(rf'name="secret\.{credential}" type="password"', answer.text)
    fields = config_fields(name)
    assert [f'name="{one.name}"' in answer.text for one in fields] == [True] * len(fields)
    defaults = {one.name: one.default for one in fields if one.default}
    samples = {one.name: str(one.attributes.get("placeholder", "")) for one in fields}
    filled = {key: text for key, text in {**samples, **defaults}.items() if text}
    PROVIDERS[name].config.model_validate(config_of(name, filled), strict=False)


async def test_a_connection_is_made_shared_and_removed(space: Space, owner: Visitor) -> None:
    path = await connected(owner, space)
    shown = await owner.get(path)
    assert (HOSTILE in shown.text, "visible only to its creator" in shown.text) == (False, True)
    assert "&lt;img" in shown.text
    assert (
        await owner.send_form(f"{path}/share", path, None, audience="everybody")
    ).status_code == 303
    assert "visible to everyone" in (await owner.get(path)).text
    listed = (await owner.get(page_of(space))).text
    assert path in listed
    assert HOSTILE not in listed
    assert (await owner.send_form(f"{path}/delete", path)).status_code == 303
    assert (await owner.get(path)).status_code == 404


@pytest.mark.parametrize("name", list(ProviderName))
async def test_a_form_has_no_keys_for_tests(
    client: Client, space: Space, owner: Visitor, name: ProviderName
) -> None:
    """The API alone knows the states of the demo, and an edited name leaves them as they are."""
    provider = PROVIDERS[name]
    assert not provider.unlisted & {one.key for one in config_fields(name)}
    if name is not ProviderName.DEMO:
        assert not provider.unlisted
        return
    config = {"edition": 2, "denied": ["a"]}
    body = {"provider": "demo", "label": "Ours", "config": config}
    made = read(await client.post(f"/v1{page_of(space, 'connections')}", json=body), 201)
    path = page_of(space, "connections", made["id"])
    for page in (path, f"{path}/edit", page_of(space, "new?provider=demo")):
        text = (await owner.get(page)).text
        for word in ("Edition", "Denied", "Vanished", "Generated", "edition"):
            assert word not in text
    renamed = await owner.send_form(f"{path}/edit", f"{path}/edit", None, label="Renamed")
    assert renamed.status_code == 303
    kept = read(await client.get(f"/v1{path}"))
    assert (kept["label"], kept["config"]) == ("Renamed", made["config"])


async def test_credentials_go_in_and_never_come_out(
    client: Client, space: Space, owner: Visitor
) -> None:
    fields = {"config.baseUrl": "https://api.example.com", "secret.secret": CANARY}
    wrong = await connect(owner, space, "http", **{**fields, "config.auth": "basic"})
    assert wrong.status_code == 400
    assert "username" in wrong.text
    assert "https://api.example.com" in wrong.text
    assert CANARY not in wrong.text
    path = await connected(owner, space, provider="http", **fields)
    assert CANARY not in (await owner.get(path)).text
    shown = read(await client.get(f"/v1{path}"))
    assert shown["config"] == {"baseUrl": "https://api.example.com", "auth": "bearer"}


@pytest.mark.parametrize(
    ("provider", "fields", "place"),
    [
        ("http", {"config.baseUrl": "ftp://x", "secret.secret": "x"}, "config.baseUrl"),
        ("http", {"config.baseUrl": "https://example.com"}, "secret.secret"),
        ("demo", {"label": "x" * 300}, "label"),
    ],
)
async def test_each_error_is_shown_beside_its_field(
    space: Space, owner: Visitor, provider: str, fields: dict[str, str], place: str
) -> None:
    answer = await connect(owner, space, provider, **fields)
    assert answer.status_code == 400
    assert re.search(rf'id="f-{re.escape(place)}"[^>]*aria-invalid="true"', answer.text)


async def test_an_unknown_field_is_refused(space: Space, owner: Visitor) -> None:
    for fields in ({"config.depth": "1"}, {"secret.token": "x"}):
        answer = await connect(owner, space, **fields)
        assert answer.status_code == 400
        assert 'class="fault"' in answer.text
    assert (await connect(owner, space, "carrier_pigeon")).status_code == 400
    assert (await owner.get(page_of(space, "new?provider=carrier_pigeon"))).status_code == 400


async def test_a_test_is_followed_by_who_asked_for_it(
    app: FastAPI, space: Space, owner: Visitor
) -> None:
    path = await connected(owner, space, shared="on")
    answer = await owner.send_form(f"{path}/test", path)
    assert answer.status_code == 303
    followed = answer.headers["location"]
    shown = (await owner.get(followed)).text
    assert "testing</span>" in shown
    assert '<noscript><meta http-equiv="refresh"' in shown
    editor, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, editor) as other:
        theirs = await other.get(followed)
        assert (theirs.status_code, "not tested" in theirs.text) == (200, True)


async def test_a_provider_is_switched_off_and_on(space: Space, owner: Visitor) -> None:
    path = await connected(owner, space)
    switch = page_of(space, "providers", "demo")
    off = await owner.send_form(switch, page_of(space), None, enabled="false")
    assert off.status_code == 303
    assert 'data-status="off"' in (await owner.get(page_of(space))).text
    assert (await owner.send_form(f"{path}/test", path)).status_code == 403
    assert (await owner.send_form(switch, page_of(space), None, enabled="true")).status_code == 303
    assert (await owner.send_form(f"{path}/test", path)).status_code == 303
    unknown = page_of(space, "providers", "carrier_pigeon")
    assert (await owner.send_form(unknown, "/", None, enabled="true")).status_code == 404


async def test_others_see_what_their_role_and_the_maker_allow(
    app: FastAPI, space: Space, foreign: Space, owner: Visitor
) -> None:
    own = await connected(owner, space)
    shared = await connected(owner, space, shared="on")
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        assert (await reader.get(own)).status_code == 404
        page = await reader.get(shared)
        assert page.status_code == 200
        assert "/delete" not in page.text
        assert "Connect<" not in (await reader.get(page_of(space))).text
        assert (await reader.get(page_of(space, "new?provider=demo"))).status_code == 403
        for action in ("test", "share", "delete"):
            assert (await reader.send_form(f"{shared}/{action}", shared)).status_code == 403
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(shared)).status_code == 404
        assert (await stranger.get(page_of(space))).status_code == 404
        assert (await stranger.send_form(f"{shared}/delete")).status_code == 404


async def test_a_connection_is_changed_by_its_form(
    client: Client, space: Space, owner: Visitor
) -> None:
    fields = {"config.baseUrl": "https://api.example.com", "secret.secret": CANARY}
    path = await connected(owner, space, provider="http", **fields)
    form = await owner.get(f"{path}/edit")
    assert 'value="https://api.example.com"' in form.text
    assert (HOSTILE in form.text, CANARY in form.text) == (False, False)
    same = {"config.baseUrl": "https://api.example.com", "config.auth": "bearer"}

    async def edit(**fields: str) -> Any:
        return await owner.send_form(f"{path}/edit", f"{path}/edit", None, **fields)

    renamed = await edit(label="Theirs", **same)
    assert (renamed.status_code, renamed.headers["location"]) == (303, path)
    assert read(await client.get(f"/v1{path}"))["label"] == "Theirs"
    elsewhere = {**same, "config.baseUrl": "https://evil.example.com"}
    refused = await edit(label="Theirs", **elsewhere)
    assert refused.status_code == 400
    assert re.search(r'id="f-secret\.secret"[^>]*aria-invalid="true"', refused.text)
    assert 'value="https://evil.example.com"' in refused.text
    assert (await edit(label="Theirs", **elsewhere, **{"secret.secret": "x"})).status_code == 303
    assert read(await client.get(f"/v1{path}"))["config"]["baseUrl"] == "https://evil.example.com"
    for wrong in ({"label": ""}, {"label": "a", "config.depth": "1"}):
        assert (await edit(**{**elsewhere, "secret.secret": "x", **wrong})).status_code == 400, (
            wrong
        )


async def test_credentials_alone_are_replaced(client: Client, space: Space, owner: Visitor) -> None:
    fields = {"config.baseUrl": "https://api.example.com", "secret.secret": CANARY}
    path = await connected(owner, space, provider="http", **fields)
    before = read(await client.get(f"/v1{path}"))
    new = {"config.baseUrl": "https://api.example.com", "secret.secret": "new", "label": "Ours"}
    answer = await owner.send_form(f"{path}/edit", f"{path}/edit", None, **new)
    assert answer.status_code == 303
    after = read(await client.get(f"/v1{path}"))
    assert after["config"] == before["config"]
    assert after["updatedAt"] > before["updatedAt"]


async def test_a_connection_is_authorized_anew(space: Space, owner: Visitor) -> None:
    path = await connected(owner, space, provider="github", **{"secret.token": "x"})
    start = page_of(space, "oauth", "start")
    assert start in (await owner.get(path)).text
    anew = {"connectionId": path.rpartition("/")[2]}
    answer = await owner.send_form(start, path, None, **anew)
    assert 'href="https://github.com/login/oauth/authorize?' in answer.text
    unknown = await owner.send_form(start, path, None, connectionId=str(new_id()))
    assert unknown.status_code == 404


RESOURCE = json.dumps(
    {
        "externalType": "document",
        "externalId": "welcome",
        "name": HOSTILE,
        "surfaceKind": "document",
        "capabilities": ["read", "mount", "import"],
    }
)


async def test_browsing_leads_to_where_the_answer_will_stand(
    app: FastAPI, space: Space, owner: Visitor
) -> None:
    path = await connected(owner, space, shared="on")
    asked = await owner.send_form(f"{path}/browse", path, None, parent=HOSTILE)
    assert asked.status_code == 303
    waiting = await owner.get(asked.headers["location"])
    assert "loading</span>" in waiting.text
    assert 'hx-trigger="every 1s"' in waiting.text
    assert HOSTILE not in waiting.text
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        theirs = await reader.get(asked.headers["location"])
        assert (theirs.status_code, "Not loaded" in theirs.text) == (200, True)
        assert "every 1s" not in theirs.text


async def test_a_resource_is_read_mounted_and_imported_by_forms(
    app: FastAPI, space: Space, owner: Visitor
) -> None:
    path = await connected(owner, space, shared="on")
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        for action in ("read", "mount", "import"):
            answer = await owner.send_form(f"{path}/{action}", path, None, resource=RESOURCE)
            assert answer.status_code == 303, answer.text
            shown = await owner.get(answer.headers["location"])
            assert "loading</span>" in shown.text
            assert HOSTILE not in shown.text
            theirs = await reader.get(answer.headers["location"])
            assert "loading</span>" not in theirs.text
            for wrong in ("{", "[]", '{"name": "x"}'):
                refused = await owner.send_form(f"{path}/{action}", path, None, resource=wrong)
                assert refused.status_code == 400
        for action in ("mount", "import"):
            refused = await reader.send_form(f"{path}/{action}", path, None, resource=RESOURCE)
            assert refused.status_code == 403


async def test_a_form_is_imported_by_a_form(app: FastAPI, space: Space, owner: Visitor) -> None:
    path = await connected(owner, space, shared="on")
    form = {**json.loads(RESOURCE), "surfaceKind": "form", "capabilities": ["import_form"]}
    fields = {"resource": json.dumps(form)}
    answer = await owner.send_form(f"{path}/import-form", path, None, **fields)
    assert answer.status_code == 303, answer.text
    followed = answer.headers["location"]
    assert "loading</span>" in (await owner.get(followed)).text
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        assert "loading</span>" not in (await reader.get(followed)).text
        refused = await reader.send_form(f"{path}/import-form", path, None, **fields)
        assert refused.status_code == 403
    plain = await connected(owner, space, provider="github", **{"secret.token": "x"})
    refused = await owner.send_form(f"{plain}/import-form", plain, None, **fields)
    assert (refused.status_code, "cannot" in refused.text) == (400, True)


async def test_a_connection_to_a_database_is_not_browsed(space: Space, owner: Visitor) -> None:
    fields = {"config.host": "db.example.com", "config.database": "shop", "config.user": "reader"}
    path = await connected(
        owner, space, provider="postgresql", **fields, **{"secret.password": "x"}
    )
    assert "/browse" not in (await owner.get(path)).text
    assert "PostgreSQL cannot be browsed" in (await owner.get(f"{path}/browse")).text


async def test_a_way_to_a_provider_is_offered_where_the_platform_is_registered(
    space: Space, owner: Visitor
) -> None:
    start = page_of(space, "oauth", "start")
    form = (await owner.get(page_of(space, "new?provider=github"))).text
    assert start in form
    assert start not in (await owner.get(page_of(space, "new?provider=notion"))).text
    fields = {"provider": "github", "label": HOSTILE}
    answer = await owner.send_form(start, page_of(space), None, **fields)
    assert answer.status_code == 200
    assert 'href="https://github.com/login/oauth/authorize?' in answer.text
    refused = await owner.send_form(start, page_of(space), None, provider="notion", label="Ours")
    assert (refused.status_code, "is not set up" in refused.text) == (422, True)


async def test_a_user_who_returns_without_a_session_is_asked_for_a_key(
    space: Space, owner: Visitor, nobody: Visitor
) -> None:
    back = f"/integrations/oauth/callback?state={space.id}.x&code={CANARY}&scope=a+b"
    assert "authorized.js" in (await nobody.get(back)).text
    page = await owner.get(back)
    assert page_of(space, "oauth", "callback") in page.text
    assert f'name="code" value="{CANARY}"' in page.text
    for wrong in ("state=x&code=y", f"state={space.id}.x&error=access_denied", ""):
        answer = await owner.get(f"/integrations/oauth/callback?{wrong}")
        assert (answer.status_code, "Not connected" in answer.text) == (200, True)
    hostile = await owner.get(
        "/integrations/oauth/callback", params={"state": f"{space.id}.{HOSTILE}", "code": HOSTILE}
    )
    assert HOSTILE not in hostile.text
    foreign_state = {"state": f"{space.id}.x", "code": CANARY}
    finish = page_of(space, "oauth", "callback")
    assert (await owner.send_form(finish, page_of(space), None, **foreign_state)).status_code == 404


ROUTES = [
    route
    for router in ROUTERS
    for route in router.routes
    if route.operation.endpoint.__module__.startswith("api.console.integrations.")
]
FORMS = [route for route in ROUTES if route.operation.method == "POST"]


def test_every_route_is_a_page_for_a_session() -> None:
    for route in ROUTES:
        access = route.operation.access
        assert (access.page, access.credential, route.is_documented) == (True, "browser", False)
        assert access.idempotent == (route.operation.method == "POST"), route.path
        assert access.scopes or route.path == CALLBACK, route.path


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.operation.name)
async def test_a_form_of_another_site_is_refused(route: Any, owner: Visitor, space: Space) -> None:
    names = {"workspaceId": str(space.id), "provider": "demo"}
    path = route.path.format_map(defaultdict(lambda: str(new_id()), names))
    fields = {"csrfToken": await owner.token(page_of(space))}
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert (await owner.post(path, data=fields, headers=elsewhere)).status_code == 403
    assert (await owner.post(path, data={"csrfToken": "x"})).status_code == 403
