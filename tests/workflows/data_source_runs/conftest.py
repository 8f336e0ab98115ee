"""Data sources that are refreshed by real workers."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.endpoint import Serve
from tests.support.engine import Engine
from tests.support.sources import Source, make_source
from tests.support.spaces import Space

MakeSource = Callable[..., Awaitable[Source]]


@pytest.fixture
async def source(client: Client, space: Space, engine: Engine, serve: Serve) -> MakeSource:
    """Makes data sources of JSON rows, keyed by their code; workers are running."""
    assert engine.database is space.database

    async def make(**changes: Any) -> Source:
        return await make_source(client, space, serve, **changes)

    return make
