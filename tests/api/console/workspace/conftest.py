"""Members of several roles at the settings of a workspace."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.settings_pages import Visit
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in


@pytest_asyncio.fixture
async def visit(app: FastAPI, space: Space) -> AsyncIterator[Visit]:
    """Signs a new member with a role in: `viewer = await visit(Role.VIEWER)`."""
    async with AsyncExitStack() as stack:

        async def enter(role: Role) -> Visitor:
            user_id, _ = await space.member(role)
            return await stack.enter_async_context(await signed_in(app, space, user_id))

        yield enter


@pytest_asyncio.fixture
async def stranger(app: FastAPI, foreign: Space) -> AsyncIterator[Visitor]:
    """The owner of another workspace."""
    async with await signed_in(app, foreign) as visitor:
        yield visitor
