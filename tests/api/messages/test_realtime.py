"""Realtime connections: who opens one, and what it is sent, over real sockets."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from runtime.development_issuer import DevelopmentIssuer
from runtime.settings import Settings
from tests.support.feeds import listening, ticket
from tests.support.server import Server, serving
from tests.support.spaces import Space


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    """The API as a process."""
    names = ("OIDC_ISSUER", "OIDC_AUDIENCE", "OIDC_JWKS")
    values = (settings.oidc_issuer, settings.oidc_audience, settings.oidc_jwks)
    environment = {
        f"WORKSPACE_{name}": str(value) for name, value in zip(names, values, strict=True)
    }
    async with serving(settings, **environment, WORKSPACE_RATE_LIMIT_KEY="0") as server:
        yield server


async def test_a_change_reaches_who_listens(
    server: Server, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = await space.session(space.user_id, issuer)
    async with (
        listening(server, space, session) as listener,
        httpx2.AsyncClient(
            base_url=server.url, headers={"Authorization": f"Bearer {space.token}"}
        ) as caller,
    ):
        made = await caller.post("/v1/items", json={"kind": "folder", "title": "Plans"})
        event = await listener.until("item.created", kind="folder")
    assert event["data"]["itemId"] == made.json()["data"]["item"]["id"]
    assert event["actor"] == {"type": "api_key", "userId": str(space.user_id)}


async def test_a_ticket_opens_one_connection(
    server: Server, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = await space.session(space.user_id, issuer)
    url = (await ticket(server, space, session))["url"]
    async with connect(url):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url)
    assert refused.value.response.status_code == 401
