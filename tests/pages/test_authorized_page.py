"""The page that a provider sends a user back to, in a real browser."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from runtime.configuration.settings import Settings
from tests.support.browser import Page
from tests.support.client import Client
from tests.support.server import Server
from tests.support.server import serving as api_process
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=5)

CALLBACK = "integrations/oauth/callback"


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    """The API as a process of its own."""
    async with api_process(settings) as server:
        yield server


@pytest.mark.long
async def test_a_stranger_cannot_finish_what_another_began(
    page: Page, server: Server, client: Client, space: Space, foreign: Space
) -> None:
    wanted = {"provider": "github", "label": "Ours"}
    started: Any = await client.post(f"{space.path}/integrations/oauth/start", json=wanted)
    state = started.json()["data"]["state"]
    await page.open(f"{server.url}/{CALLBACK}?state={state}&code=canary-code&scope=a+b")
    await page.until("!document.getElementById('entry').hidden")
    # The code does not stay in the address, where the history keeps it.
    assert await page.evaluate("location.search") == ""
    await page.evaluate(
        f"document.getElementById('token').value = '{foreign.token}';"
        "document.querySelector('button').click()"
    )
    await page.until("document.getElementById('refusal').textContent")
    assert "does not exist" in await page.text("#refusal")
    page.problems.clear()  # the browser notes the refusal


async def test_a_refusal_of_the_provider_is_said(page: Page, server: Server) -> None:
    await page.open(f"{server.url}/{CALLBACK}?error=access_denied&state=x")
    await page.until("!document.getElementById('done').hidden")
    assert "Not connected" in await page.text("#done")
