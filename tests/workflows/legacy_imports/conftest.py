"""Legacy imports that real workers carry out."""

import pytest

from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.legacy_imports import Administrator, administrator
from tests.support.spaces import Space


@pytest.fixture
async def admin(client: Client, space: Space, engine: Engine) -> Administrator:
    """A platform administrator; workers are running."""
    assert engine.database is space.database
    return await administrator(client, space)
