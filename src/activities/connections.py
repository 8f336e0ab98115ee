"""Requests through a connection of a workspace: their sign-in, and notes of how they went."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from models.core.base import Id
from models.sources.connections import store
from models.sources.connections.providers import HttpConnection, ProviderName
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import Database, Work
from runtime.outbound.client import call_through
from runtime.outbound.messages import AuthScheme, authentication, parse_url, same_origin


class ConnectionUseError(Exception):
    """A connection cannot be used for a request; `message` is for the user who configured it."""

    retryable = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def find_connected(
    work: Work, keys: KeyRing, workspace_id: Id, connection_id: Id
) -> store.Connected:
    """A connection with its credentials, for the calls from now on.

    Raises ConnectionUseError when it was deleted, or its credentials cannot be read any more.
    """
    try:
        connection = await store.open_connection(work, keys, workspace_id, connection_id)
    except UnreadableError:
        message = "The credentials of the connection can no longer be read. Enter them again."
        raise ConnectionUseError(message) from None
    if connection is None:
        raise ConnectionUseError("The connection was deleted.")
    call_through(connection_id)
    return connection


class SignIn(NamedTuple):
    """The sign-in of a request: `scheme` and `credential` are the arguments of `authentication`."""

    scheme: AuthScheme
    credential: str
    header_name: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        return authentication(self.scheme, self.credential, self.header_name)


async def sign_in(
    work: Work, keys: KeyRing, workspace_id: Id, connection_id: Id, url: str
) -> SignIn:
    """The sign-in of a connection at a URL.

    Raises ConnectionUseError when it was deleted, and for a URL of another origin, which its
    credentials were not given for. Raises what `parse_url` raises.
    """
    connection = await find_connected(work, keys, workspace_id, connection_id)
    if connection.provider is not ProviderName.HTTP:
        raise ConnectionUseError("Only HTTP connections can be used for a URL.")
    config = HttpConnection.model_validate(connection.config)
    if not same_origin(parse_url(url), parse_url(config.base_url)):
        raise ConnectionUseError("The connection is for another origin than the URL.")
    secret = connection.credentials.get("secret", "")
    if config.username is not None:
        secret = f"{config.username}:{secret}"
    return SignIn(config.auth, secret, config.header_name)


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
                await store.note_success(single, workspace_id, connection_id)
        else:
            async with database.transaction() as work:
                await store.note_failure(work, workspace_id, connection_id, message)
    except (psycopg.Error, DBAPIError, PoolTimeoutError):
        log.warning("the health of a connection could not be noted", exc_info=True)
