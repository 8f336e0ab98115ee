"""Connections that were authorized, with a token that is in force."""

import asyncio
from datetime import datetime
from weakref import WeakValueDictionary

from activities.authorizations.token_endpoint import NotAcceptedError, TokenEndpoints
from activities.connections import ConnectionUseError, find_connected
from activities.open_transactions import keep_open
from models.core.base import Id
from models.sources.authorizations.rules import ACCESS_TOKEN, is_stale
from models.sources.connections.commands import store_credentials
from models.sources.connections.queries import Connected, hold_connection
from runtime.database import Database
from runtime.errors import UnsupportedError


class Tokens:
    """Renews tokens, once for all workers: the second one waits for the row, and reads it.

    In one worker the second one waits without a connection to the database.
    """

    def __init__(self, database: Database, endpoints: TokenEndpoints) -> None:
        self._database = database
        self._endpoints = endpoints
        self._renewals: WeakValueDictionary[Id, asyncio.Lock] = WeakValueDictionary()

    async def connected(
        self, workspace_id: Id, connection_id: Id, *, rejected: str | None = None
    ) -> Connected:
        """A connection whose token is in force, and is not the one the provider `rejected`.

        Raises ConnectionUseError for one that is gone or has to be authorized again, OutboundError
        and UnansweredError when the provider does not answer.
        """
        keys = self._endpoints.keys
        async with self._database.reading() as work:
            connection = await find_connected(work, keys, workspace_id, connection_id)
        if not _needs_renewal(connection, rejected, work.now):
            return connection
        renewal_lock = self._renewals.setdefault(connection_id, asyncio.Lock())
        async with renewal_lock, self._database.transaction() as work:
            await hold_connection(work, workspace_id, connection_id)
            connection = await find_connected(work, keys, workspace_id, connection_id)
            if not _needs_renewal(connection, rejected, work.now):
                return connection
            try:
                renewal = self._endpoints.of(connection.provider).refresh(connection.credentials)
                renewed = await keep_open(work, renewal)
            except UnsupportedError as error:
                raise ConnectionUseError(error.message) from None
            except NotAcceptedError:
                raise ConnectionUseError(
                    "The provider does not accept the connection any more. Authorize it again."
                ) from None
            await store_credentials(work, keys, workspace_id, connection_id, renewed)
            return connection._replace(credentials=renewed)


def _needs_renewal(found: Connected, rejected: str | None, now: datetime) -> bool:
    token = found.credentials.get(ACCESS_TOKEN)
    return token is not None and (token == rejected or is_stale(found.credentials, now))
