"""A browser before a real API process, with workers behind it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.configuration.settings import Settings
from tests.support.browser import CHROMIUM, Page, Protocol, browser
from tests.support.engine import running_engine
from tests.support.person import Person
from tests.support.postgres import emptied
from tests.support.server import Server
from tests.support.server import serving as api_process
from tests.support.spaces import Space
from tests.support.temporal import dev_server
from tests.support.watched import WatchedDatabase

SCREENS = "WORKSPACE_TEST_SCREENS"
"""A directory that keeps the pictures; by default they are gone with the test."""


@pytest_asyncio.fixture(scope="module")
async def server(
    settings: Settings, _watched_database: WatchedDatabase, database_url: str
) -> AsyncIterator[Server]:
    """The API as a process of its own, and workers that find nothing earlier tests have left."""
    emptied(database_url)
    async with (
        dev_server() as temporal,
        running_engine(
            _watched_database, database_url, temporal.client, store=settings.object_store
        ),
        api_process(settings, WORKSPACE_TEMPORAL_UI_URL="http://127.0.0.1:8233") as server,
    ):
        yield server


@pytest.fixture
def person(server: Server, space: Space) -> Person:
    """The owner of the workspace, who calls the API of that process."""
    return Person(server, space)


@pytest_asyncio.fixture(scope="module")
async def chromium(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Protocol]:
    if CHROMIUM is None:
        pytest.skip("No Chromium on PATH: install the package chromium to test the pages.")
    async with browser(tmp_path_factory.mktemp("profile")) as protocol:
        yield protocol


@pytest_asyncio.fixture
async def page(chromium: Protocol) -> AsyncIterator[Page]:
    """A fresh tab; any error in it fails the test."""
    async with chromium.page() as page:
        yield page
    assert page.problems == []


@pytest.fixture
def screens(tmp_path: Path) -> Path:
    """Where pictures go."""
    return Path(os.environ.get(SCREENS, tmp_path))
