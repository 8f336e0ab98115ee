"""A database to write records into, and a record of the statements that are sent."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from tests.support.spaces import Space

MakeDatabase = Callable[..., Awaitable[UUID]]


@pytest.fixture
def make_database(space: Space) -> MakeDatabase:
    """Makes databases in `space`: `await make_database({"label": "N", "kind": "number"})`."""

    async def make(*fields: dict[str, Any]) -> UUID:
        body = CreateDatabase.model_validate({"label": "Things", "fields": list(fields)})
        async with space.database.transaction() as work:
            return (await create_database(work, space.actor, body)).id

    return make


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every statement the driver sends from now on, whichever way it came.

    But for those the application's door sends now and then, also for calls of earlier tests.
    """
    statements: list[Any] = []
    execute = psycopg.AsyncCursor.execute

    async def counting(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        # An empty one tries a connection that was idle.
        if query and not any(name in str(query) for name in ("request_log", "api_key")):
            statements.append(query)
        return await execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counting)
    return statements
