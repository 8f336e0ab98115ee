"""Providers that users sign in at, asked through the API: tokens are renewed, never seen."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
import structlog
from sqlalchemy import Text, func, literal_column, select

from models.core.base import Id
from models.messages.jobs.store import job
from models.sources.connections.store import open_connection
from runtime.configuration.settings import Settings
from runtime.postgresql.schema import metadata
from tests.support.authorization_server import (
    CLIENT_SECRET,
    AuthorizationServer,
    authorization_server,
)
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.endpoint import reply
from tests.support.engine import Engine
from tests.support.provider_server import ProviderServer, provider_server
from tests.support.spaces import Space
from tests.workflows.authorizations.test_authorizations import connect, endpoints, registered

pytestmark = pytest.mark.takes(seconds=10)

DOCUMENT = {"id": "doc", "name": "The plan", "mimeType": "application/vnd.google-apps.document"}
ROUTES = {
    "GET /drive/v3/about": lambda _: reply(200, {"user": {}}),
    "GET /drive/v3/files": lambda _: reply(200, {"files": [DOCUMENT]}),
    "GET /drive/v3/files/doc": lambda _: reply(200, DOCUMENT),
    "GET /drive/v3/files/doc/export": lambda _: reply(200, "# Plan", type_="text/markdown"),
}


@pytest_asyncio.fixture(scope="module")
async def signing_in() -> AsyncIterator[AuthorizationServer]:
    async with authorization_server() as server:
        yield server


@pytest_asyncio.fixture
async def drive(settings: Settings) -> AsyncIterator[ProviderServer]:
    address = urlsplit(settings.providers["google_drive"].api_url or "")
    async with provider_server(ROUTES, address.port or 0) as server:
        yield server


async def credentials(space: Space, connection_id: str) -> dict[str, str]:
    async with space.database.transaction() as work:
        found = await open_connection(work, space.keys, space.id, Id(connection_id))
    assert found is not None
    return found.credentials


async def ask(client: Client, space: Space, what: str, **body: Any) -> Any:
    return await client.post(f"{space.path}/integrations/resources/{what}", json=body)


@pytest.mark.long
async def test_a_rejected_token_is_renewed_and_no_token_is_seen(
    client: Client,
    space: Space,
    settings: Settings,
    signing_in: AuthorizationServer,
    drive: ProviderServer,
    engine: Engine,
) -> None:
    with (
        registered(settings, **endpoints(signing_in.url)),
        structlog.testing.capture_logs() as logs,
    ):
        made = await connect(client, space, signing_in)
        old = await credentials(space, made["id"])
        drive.accepted = old["accessToken"]
        given = {"connectionId": made["id"]}
        listed = await ask(client, space, "browse", **given)
        resource = read(listed)["resources"][0]
        # From now on the provider rejects the token, and says so with it in its answer.
        issued = (await signing_in.seen())["issued"]
        drive.accepted = "the next one"
        rejected = await ask(client, space, "read", **given, resource=resource)
        assert refusal(rejected) == (502, "upstream_error")
        new = await credentials(space, made["id"])
        drive.accepted = new["accessToken"]
        answers = await asyncio.gather(
            *(ask(client, space, "read", **given, resource=resource) for _ in range(4))
        )
        assert {read(one)["content"] for one in answers} == {"# Plan"}
        assert (await signing_in.seen())["issued"] == issued + 1
        path = f"{space.path}/integrations/connections/{made['id']}"
        others = [listed, rejected, *answers, await client.get(path), await client.delete(path)]
    planted = [
        *(kept[name] for kept in (old, new) for name in ("accessToken", "refreshToken")),
        CLIENT_SECRET,
    ]
    said = "".join(one.text for one in others) + str(logs)
    assert [one for one in planted if one in said] == []
    assert await in_the_database(space, planted) == []
    assert await in_histories(space, engine, planted) == []


async def in_the_database(space: Space, planted: list[str]) -> list[str]:
    async with space.database.transaction() as work:
        found = []
        for table in metadata.sorted_tables:
            row = func.to_jsonb(literal_column(f'"{table.name}"')).cast(Text)
            for one in await work.rows(select(row.label("row")).select_from(table)):
                found += [f"{table.name}: {secret}" for secret in planted if secret in one.row]
    return found


async def in_histories(space: Space, engine: Engine, planted: list[str]) -> list[str]:
    """The secrets that stand in a history of a job of the workspace."""
    async with space.database.transaction() as work:
        jobs = await work.rows(
            select(job.c.id, job.c.workflow_kind).where(job.c.workspace_id == space.id)
        )
    workflow_kinds = {one.workflow_kind for one in jobs}
    assert {"oauth-exchange", "oauth-revocation"} <= workflow_kinds
    found = []
    for one in jobs:
        handle = engine.client.get_workflow_handle(f"{one.workflow_kind}/{one.id}")
        history = (await handle.fetch_history()).to_json()
        found += [f"{one.workflow_kind}: {secret}" for secret in planted if secret in history]
    return found


async def test_an_id_that_leads_elsewhere_is_a_mistake_of_the_caller(
    client: Client, space: Space, engine: Engine
) -> None:
    made = await client.post(
        f"{space.path}/integrations/connections",
        json={
            "provider": "webdav",
            "label": "Files",
            "config": {"baseUrl": "http://127.0.0.1:8099/dav/", "auth": "none"},
        },
    )
    given = {"connectionId": made.json()["data"]["id"]}
    listed = await ask(client, space, "browse", **given, parentExternalId="../..")
    assert refusal(listed) == (400, "validation_error")
    assert engine.database is space.database
