"""People at the console of the application."""

from collections.abc import AsyncIterator

import pytest_asyncio
from fastapi import FastAPI

from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in


@pytest_asyncio.fixture
async def owner(app: FastAPI, space: Space) -> AsyncIterator[Visitor]:
    """The owner of `space` in a session."""
    async with await signed_in(app, space) as visitor:
        yield visitor


@pytest_asyncio.fixture
async def nobody(app: FastAPI) -> AsyncIterator[Visitor]:
    """A browser without a session."""
    async with Visitor(app) as visitor:
        yield visitor
