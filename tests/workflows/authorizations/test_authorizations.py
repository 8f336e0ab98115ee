"""Signing in at a provider, against a real authorization server and a real OpenID provider."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import Text, func, literal_column, select, update

from activities.connections import ConnectionUseError, TokenEndpoints, Tokens
from models.core.access.rules import Role
from models.core.base import Id
from models.messages.jobs.store import job
from models.sources.authorizations.store import oauth_authorization
from models.sources.connections.store import connection, open_connection
from runtime.configuration.sections import ProviderSettings
from runtime.configuration.settings import Settings
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from runtime.postgresql.schema import metadata
from tests.support.authorization_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    AuthorizationServer,
    authorization_server,
    process,
)
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine
from tests.support.patience import ENOUGH, eventually
from tests.support.spaces import Space
from tests.support.visitor import signed_in

pytestmark = pytest.mark.takes(seconds=15)

WANTED = {"provider": "google_drive", "label": "Our drive"}


@pytest_asyncio.fixture(scope="module")
async def provider() -> AsyncIterator[AuthorizationServer]:
    async with authorization_server() as server:
        yield server


@contextmanager
def registered(settings: Settings, **known: Any) -> Iterator[None]:
    """The platform, registered at a provider as Google Drive."""
    whole = {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, **known}
    before = settings.providers["google_drive"]
    settings.providers["google_drive"] = ProviderSettings.model_validate(whole)
    try:
        yield
    finally:
        settings.providers["google_drive"] = before


@pytest.fixture
def _registered(settings: Settings, provider: AuthorizationServer) -> Iterator[None]:
    with registered(settings, **endpoints(provider.url)):
        yield


def endpoints(url: str) -> dict[str, str]:
    return {
        "authorizationUrl": f"{url}/authorize",
        "tokenUrl": f"{url}/token",
        "revocationUrl": f"{url}/revoke",
    }


def oauth(space: Space) -> str:
    return f"{space.path}/integrations/oauth"


async def start(client: Client, space: Space, **body: Any) -> Any:
    return read(await client.post(f"{oauth(space)}/start", json=body or WANTED))


async def credentials(space: Space, connection_id: str) -> dict[str, str]:
    async with space.database.transaction() as work:
        found = await open_connection(work, space.keys, space.id, Id(connection_id))
    assert found is not None
    return found.credentials


async def connect(client: Client, space: Space, provider: AuthorizationServer) -> Any:
    started = await start(client, space)
    back = await provider.consent(started["authorizationUrl"])
    return read(await client.post(f"{oauth(space)}/callback", json=back))


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_user_signs_in_and_the_tokens_stay_within(
    client: Client, space: Space, provider: AuthorizationServer
) -> None:
    started = await start(client, space)
    asked = httpx2.URL(started["authorizationUrl"]).params
    assert (asked["code_challenge_method"], asked["redirect_uri"]) == (
        "S256",
        "https://platform.test/integrations/oauth/callback",
    )
    back = await provider.consent(started["authorizationUrl"])
    assert back["state"] == started["state"]
    answer = await client.post(f"{oauth(space)}/callback", json=back)
    made = read(answer)
    assert (made["provider"], made["label"], made["shared"]) == ("google_drive", "Our drive", False)
    kept = await credentials(space, made["id"])
    assert (await provider.seen())["valid"].count(kept["accessToken"]) == 1
    path = f"{space.path}/integrations/connections/{made['id']}"
    shown = answer.text + (await client.get(path)).text
    secrets = [kept["accessToken"], kept["refreshToken"], back["code"], CLIENT_SECRET]
    assert [one for one in secrets if one in shown] == []
    # Used once: the code was exchanged, and the authorization is gone.
    again = await client.post(f"{oauth(space)}/callback", json=back)
    assert refusal(again) == (404, "not_found")
    async with space.database.transaction() as work:
        own = oauth_authorization.c.workspace_id == space.id
        assert await work.rows(select(oauth_authorization.c.id).where(own)) == []


@pytest.mark.long
@pytest.mark.usefixtures("_registered", "engine")
async def test_no_secret_is_readable_in_the_database(
    client: Client, space: Space, provider: AuthorizationServer
) -> None:
    started = await start(client, space)
    back = await provider.consent(started["authorizationUrl"])
    made = read(await client.post(f"{oauth(space)}/callback", json=back))
    kept = await credentials(space, made["id"])
    planted = [kept["accessToken"], kept["refreshToken"], back["code"], started["state"]]
    async with space.database.transaction() as work:
        for table in metadata.sorted_tables:
            row = func.to_jsonb(literal_column(f'"{table.name}"')).cast(Text)
            rows = await work.rows(select(row.label("row")).select_from(table))
            assert [p for p in planted for one in rows if p in one.row] == [], table.name


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_state_is_of_its_caller_and_of_its_time(
    client: Client, space: Space, foreign: Space, provider: AuthorizationServer
) -> None:
    started = await start(client, space)
    back = await provider.consent(started["authorizationUrl"])
    _, token = await space.member(Role.ADMIN)
    theirs = {"Authorization": f"Bearer {token}"}
    # A member who was lured into opening the page of another user's authorization.
    lured = await client.post(f"{oauth(space)}/callback", json=back, headers=theirs)
    assert refusal(lured) == (404, "not_found")
    elsewhere = {"Authorization": f"Bearer {foreign.token}"}
    strange = await client.post(f"{oauth(foreign)}/callback", json=back, headers=elsewhere)
    assert refusal(strange) == (404, "not_found")
    made_up = {**back, "state": f"{space.id}.x"}
    assert refusal(await client.post(f"{oauth(space)}/callback", json=made_up))[0] == 404
    async with space.database.transaction() as work:
        old = update(oauth_authorization).where(oauth_authorization.c.workspace_id == space.id)
        await work.execute(old.values(expires_at=work.now))
    late = await client.post(f"{oauth(space)}/callback", json=back)
    assert refusal(late) == (404, "not_found")


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_code_is_exchanged_once_however_often_it_comes(
    client: Client, space: Space, provider: AuthorizationServer
) -> None:
    started = await start(client, space)
    back = await provider.consent(started["authorizationUrl"])
    path = f"{oauth(space)}/callback"
    answers = await asyncio.gather(*(client.post(path, json=back) for _ in range(8)))
    assert sorted(one.status_code for one in answers) == [200, *[404] * 7]
    made = next(one.json()["data"] for one in answers if one.is_success)
    kept = await credentials(space, made["id"])
    # The code alone, by an authorization of its own: the provider knows that it was used.
    other = await start(client, space)
    again = await client.post(path, json={"state": other["state"], "code": back["code"]})
    assert refusal(again) == (400, "validation_error")
    assert (await credentials(space, made["id"])) == kept
    connections = read(await client.get(f"{space.path}/integrations/connections"))["connections"]
    assert [one["id"] for one in connections] == [made["id"]]


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_code_of_another_user_is_not_put_into_an_authorization(
    client: Client, space: Space, foreign: Space, provider: AuthorizationServer
) -> None:
    """Who gives a victim another account's code to bring back, or takes theirs, gets nothing."""
    _, token = await space.member(Role.ADMIN)
    attacker = client.with_token(token)
    theirs, mine = await start(attacker, space), await start(client, space)
    stolen = await provider.consent(mine["authorizationUrl"])
    planted = await provider.consent(theirs["authorizationUrl"])
    path = f"{oauth(space)}/callback"
    # The code of each was asked for with the challenge of its own authorization (RFC 7636).
    for caller, state, code in (
        (client, mine["state"], planted["code"]),
        (attacker, theirs["state"], stolen["code"]),
    ):
        answer = await caller.post(path, json={"state": state, "code": code})
        assert refusal(answer) == (400, "validation_error")
    # A state that an attacker fixed is not the victim's, with any code.
    fixed = await start(attacker, space)
    for code in (planted["code"], stolen["code"], "made-up"):
        answer = await client.post(path, json={"state": fixed["state"], "code": code})
        assert refusal(answer) == (404, "not_found")
    # The state of another workspace says nothing in this one, to the same caller neither.
    abroad = await start(client.with_token(foreign.token), foreign)
    answer = await client.post(path, json={"state": abroad["state"], "code": stolen["code"]})
    assert refusal(answer) == (404, "not_found")
    for caller in (client, attacker):
        listed = read(await caller.get(f"{space.path}/integrations/connections"))
        assert listed["connections"] == []


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_refusal_of_the_provider_is_reported(client: Client, space: Space) -> None:
    started = await start(client, space)
    denied = {"state": started["state"], "error": "access_denied"}
    assert refusal(await client.post(f"{oauth(space)}/callback", json=denied))[0] == 400
    wrong = {"state": started["state"], "code": "made-up"}
    refused = await client.post(f"{oauth(space)}/callback", json=wrong)
    assert refusal(refused) == (400, "validation_error")
    assert "made-up" not in refused.text
    again = await client.post(f"{oauth(space)}/callback", json=wrong)
    assert refusal(again) == (404, "not_found")


@pytest.mark.usefixtures("engine")
async def test_a_provider_that_fails_makes_no_connection(
    client: Client, space: Space, settings: Settings, serve: Serve
) -> None:
    broken = await serve(reply(503, "down"), reply(200, {"access_token": 5}), reply(200, "<html>"))
    for _ in range(3):
        with registered(settings, **endpoints(broken.url.rstrip("/"))):
            started = await start(client, space)
            back = {"state": started["state"], "code": "x"}
            answer = await client.post(f"{oauth(space)}/callback", json=back)
        assert refusal(answer) == (502, "upstream_error")
    listed = read(await client.get(f"{space.path}/integrations/connections"))
    assert listed["connections"] == []


async def test_sign_in_needs_a_registration_of_the_platform(client: Client, space: Space) -> None:
    for provider in ("notion", "http"):
        wanted = {"provider": provider, "label": "x"}
        answer = await client.post(f"{oauth(space)}/start", json=wanted)
        assert refusal(answer) == (422, "unsupported")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"provider": "github"},
        {"provider": "nobody", "label": "x"},
        {"provider": "github", "label": "x", "config": {"apiUrl": "http://evil.example"}},
        {
            "provider": "github",
            "label": "x",
            "connectionId": "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f",
        },
        {"provider": "github", "label": "x", "extra": 1},
    ],
)
async def test_bodies_are_checked(client: Client, space: Space, body: Any) -> None:
    answer = await client.post(f"{oauth(space)}/start", json=body)
    assert refusal(answer) == (400, "validation_error")


@pytest_asyncio.fixture
async def tokens(space: Space, settings: Settings) -> AsyncIterator[Tokens]:
    """As a worker has them."""
    async with OutboundClient(OutboundPolicy.from_entries(("127.0.0.0/8",))) as outbound:
        endpoints = TokenEndpoints(outbound, space.keys, settings.providers)
        yield Tokens(space.database, endpoints)


@pytest.mark.usefixtures("_registered", "engine")
async def test_many_workers_renew_a_token_once(
    client: Client, space: Space, provider: AuthorizationServer, tokens: Tokens
) -> None:
    made = await connect(client, space, provider)
    old = (await credentials(space, made["id"]))["accessToken"]
    before = (await provider.seen())["issued"]
    found = await asyncio.gather(
        *(tokens.connected(space.id, Id(made["id"]), rejected=old) for _ in range(8))
    )
    new = {one.credentials["accessToken"] for one in found}
    assert len(new) == 1
    assert new != {old}
    seen = await provider.seen()
    assert (seen["issued"] - before, old in seen["valid"]) == (1, False)
    # The second renewal needs the refresh token that came with the first.
    again = await tokens.connected(space.id, Id(made["id"]), rejected=new.pop())
    assert again.credentials["accessToken"] in (await provider.seen())["valid"]


@pytest.mark.usefixtures("engine")
async def test_a_token_is_renewed_before_it_expires(
    client: Client, space: Space, settings: Settings, tokens: Tokens
) -> None:
    async with authorization_server(seconds=30) as short:
        with registered(settings, **endpoints(short.url)):
            made = await connect(client, space, short)
            old = await credentials(space, made["id"])
            found = await tokens.connected(space.id, Id(made["id"]))
    assert found.credentials["accessToken"] != old["accessToken"]


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_rejected_connection_is_authorized_again(
    client: Client, space: Space, provider: AuthorizationServer, tokens: Tokens
) -> None:
    made = await connect(client, space, provider)
    old = await credentials(space, made["id"])
    async with httpx2.AsyncClient(timeout=ENOUGH) as http:
        form = {
            "token": old["accessToken"],
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
        }
        await http.post(f"{provider.url}/revoke", data=form)
    with pytest.raises(ConnectionUseError, match="Authorize it again"):
        await tokens.connected(space.id, Id(made["id"]), rejected=old["accessToken"])
    started = await start(client, space, connectionId=made["id"])
    back = await provider.consent(started["authorizationUrl"])
    again = read(await client.post(f"{oauth(space)}/callback", json=back))
    assert again["id"] == made["id"]
    found = await tokens.connected(space.id, Id(made["id"]), rejected=old["accessToken"])
    assert found.credentials["accessToken"] in (await provider.seen())["valid"]


@pytest.mark.usefixtures("_registered")
async def test_the_tokens_of_a_deleted_connection_end(
    client: Client, space: Space, provider: AuthorizationServer, engine: Engine
) -> None:
    made = await connect(client, space, provider)
    token = (await credentials(space, made["id"]))["accessToken"]
    path = f"{space.path}/integrations/connections/{made['id']}"
    assert (await client.delete(path)).is_success
    async with space.database.transaction() as work:
        gone = await work.first(select(connection).where(connection.c.id == Id(made["id"])))
    assert gone is None

    async def forgotten() -> bool:
        async with space.database.transaction() as work:
            row = await work.first(select(job).where(job.c.subject_id == Id(made["id"])))
        return row is not None and row.status == "succeeded" and row.input == {}

    await eventually(forgotten)
    assert token not in (await provider.seen())["valid"]
    assert engine.database is space.database


@pytest.mark.long
@pytest.mark.usefixtures("engine")
async def test_a_real_openid_provider(client: Client, space: Space, settings: Settings) -> None:
    script = (
        "import oidc_provider_mock as o, sys, time\n"
        "with o.run_server_in_thread() as s:\n"
        " print(f'http://localhost:{s.server_port}', flush=True)\n"
        " time.sleep(600)"
    )
    async with process("-c", script) as url:
        async with httpx2.AsyncClient(timeout=ENOUGH) as http:
            found = (await http.get(f"{url}/.well-known/openid-configuration")).json()
        known = {
            "authorizationUrl": found["authorization_endpoint"],
            "tokenUrl": found["token_endpoint"],
            "scopes": ["openid", "email"],
        }
        with registered(settings, **known):
            started = await start(client, space)
            async with httpx2.AsyncClient(timeout=ENOUGH) as http:
                agreed = await http.post(started["authorizationUrl"], data={"sub": "ann"})
            back = dict(httpx2.URL(agreed.headers["location"]).params)
            made = read(await client.post(f"{oauth(space)}/callback", json=back))
        kept = await credentials(space, made["id"])
        async with httpx2.AsyncClient(timeout=ENOUGH) as http:
            asked = {"Authorization": f"Bearer {kept['accessToken']}"}
            told = await http.get(found["userinfo_endpoint"], headers=asked)
    assert told.json()["sub"] == "ann"


async def test_the_page_takes_what_a_provider_sends(client: Client) -> None:
    path = "/integrations/oauth/callback?state=x&code=y&scope=a+b&authuser=0"
    answer = await client.get(path, headers={"Authorization": ""})
    assert (answer.status_code, answer.headers["content-type"][:9]) == (200, "text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.usefixtures("_registered", "engine")
async def test_a_person_signs_in_from_the_console(
    app: FastAPI, space: Space, provider: AuthorizationServer
) -> None:
    pages = f"/workspaces/{space.id}/integrations"
    async with await signed_in(app, space) as visitor:
        start = await visitor.send_form(f"{pages}/oauth/start", pages, None, **WANTED)
        (way,) = re.findall(r'rel="noreferrer" href="([^"]+)"', start.text)
        returned = await provider.consent(unescape(way))
        back = await visitor.get("/integrations/oauth/callback", params=returned)
        assert returned["state"] in back.text
        finish = await visitor.send_form(f"{pages}/oauth/callback", pages, None, **returned)
        assert finish.status_code == 303, finish.text
        waiting = finish.headers["location"]

        async def is_there() -> bool:
            return (await visitor.get(waiting)).status_code == 303

        await eventually(is_there, what="the connection")
        connection_page = await visitor.get(waiting, follow_redirects=True)
        assert WANTED["label"] in connection_page.text
        again = await visitor.send_form(f"{pages}/oauth/callback", pages, None, **returned)
        assert again.status_code == 404
