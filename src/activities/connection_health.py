"""Notes of the calls through connections: whether each reached the other side, or why not."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from models.core.base import Id
from models.sources.connections.health import note_failure, note_success
from runtime.database import Database

log = structlog.get_logger()

Reason = Callable[[Exception], str | None]
"""Gives why a call failed; None for what says nothing of the connection."""


@asynccontextmanager
async def noted_call(
    database: Database, workspace_id: Id, connection_id: Id | None, reason: Reason
) -> AsyncIterator[None]:
    """Note how the calls of the block went, in a transaction of its own; without an id nothing.

    A call that was cut off from outside is not noted.
    """
    try:
        yield
    except Exception as error:
        message = reason(error)
        if connection_id is not None and message is not None:
            await _note(database, workspace_id, connection_id, message)
        raise
    if connection_id is not None:
        await _note(database, workspace_id, connection_id, None)


async def _note(
    database: Database, workspace_id: Id, connection_id: Id, message: str | None
) -> None:
    """Note a failure, or a success; the call itself does not depend on it."""
    try:
        if message is None:
            async with database.statement() as single:
                await note_success(single, workspace_id, connection_id)
        else:
            async with database.transaction() as work:
                await note_failure(work, workspace_id, connection_id, message)
    except (psycopg.Error, DBAPIError, PoolTimeoutError):
        log.warning("the health of a connection could not be noted", exc_info=True)
