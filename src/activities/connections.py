"""Requests through a connection: their sign-in, its tokens, and notes of how they went.

Tokens of providers where users signed in are had for a code, renewed and revoked (RFC 6749,
RFC 7009).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote
from weakref import WeakValueDictionary

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from activities.heartbeats import keep_open
from models.core.base import Id
from models.sources.authorizations import rules
from models.sources.connections import store
from models.sources.connections.providers import HttpConnection, ProviderName
from runtime.clock import utc_now
from runtime.configuration.sections import ProviderSettings
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import Database, Work
from runtime.errors import UnsupportedError
from runtime.outbound import messages
from runtime.outbound.client import OutboundClient, call_through


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

    scheme: messages.AuthScheme
    credential: str
    header_name: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        return messages.authentication(self.scheme, self.credential, self.header_name)


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
    if not messages.same_origin(messages.parse_url(url), messages.parse_url(config.base_url)):
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


SECONDS = 15.0
"""Of one request: less than the statement of another worker waits for the row."""
MAX_BYTES = 256 * 1024

_REFUSED = frozenset({400, 401, 403})


class NotAcceptedError(Exception):
    """The provider does not accept what it was shown: the user has to sign in again."""

    retryable = False


class UnansweredError(Exception):
    """The provider gave no answer that can be read; another attempt may get one."""

    retryable = True


class TokenEndpoint:
    """One provider's endpoints; every call may raise OutboundError too."""

    def __init__(self, outbound: OutboundClient, client: rules.OAuthClient) -> None:
        self._outbound = outbound
        self._client = client

    async def exchange(self, redirect_uri: str, secrets: Mapping[str, str]) -> dict[str, str]:
        """The credentials for a code. Raises NotAcceptedError and UnansweredError."""
        grant = {
            "grant_type": "authorization_code",
            "code": secrets["code"],
            "redirect_uri": redirect_uri,
            "code_verifier": secrets["verifier"],
        }
        return await self._tokens(grant, {})

    async def refresh(self, credentials: Mapping[str, str]) -> dict[str, str]:
        """New credentials. Raises NotAcceptedError and UnansweredError."""
        if rules.REFRESH_TOKEN not in credentials:
            raise NotAcceptedError
        grant = {"grant_type": "refresh_token", "refresh_token": credentials[rules.REFRESH_TOKEN]}
        return await self._tokens(grant, credentials)

    async def revoke(self, credentials: Mapping[str, str]) -> None:
        """Revoke a token, and with it the tokens made from it. Raises UnansweredError."""
        if self._client.revocation_url is None:
            return
        if self._client.provider.revocation == "github":
            request = self._github_revocation(credentials)
        else:
            token = credentials.get(rules.REFRESH_TOKEN) or credentials[rules.ACCESS_TOKEN]
            request = self._request(self._client.revocation_url, {"token": token})
        answer = await self._outbound.send(request)
        # One that the provider does not know has ended already.
        if answer.retryable:
            raise UnansweredError

    async def _tokens(self, grant: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
        answer = await self._outbound.send(self._request(self._client.token_url, grant))
        body = _json_object(answer)
        # GitHub says 200 beside its errors.
        if "error" in body or answer.status in _REFUSED:
            raise NotAcceptedError
        found = rules.credentials_of(body, before, utc_now()) if answer.status == 200 else None
        if found is None:
            raise UnansweredError
        return found

    def _request(self, url: str, fields: Mapping[str, str]) -> messages.OutboundRequest:
        client, headers, body = self._client, {"Accept": messages.JSON}, dict(fields)
        if client.provider.client == "basic" and client.client_secret is not None:
            # Form-encoded before they are joined (RFC 6749, 2.3.1).
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
            headers |= messages.authentication("basic", pair)
        else:
            body["client_id"] = client.client_id
            if client.client_secret is not None:
                body["client_secret"] = client.client_secret
        headers["Content-Type"] = messages.FORM if client.provider.body == "form" else messages.JSON
        return messages.OutboundRequest(
            method="POST",
            url=url,
            headers=headers,
            body=body,
            timeout_seconds=SECONDS,
            max_bytes=MAX_BYTES,
            # The body holds secrets, which are for this endpoint alone.
            follow_redirects=False,
        )

    def _github_revocation(self, credentials: Mapping[str, str]) -> messages.OutboundRequest:
        """GitHub REST API, "Delete an app token"."""
        client = self._client
        assert client.revocation_url is not None, "the caller looked"
        return messages.OutboundRequest(
            method="DELETE",
            url=client.revocation_url.replace("{client_id}", quote(client.client_id, safe="")),
            headers={
                "Accept": messages.JSON,
                **messages.authentication(
                    "basic", f"{client.client_id}:{client.client_secret or ''}"
                ),
            },
            body={"access_token": credentials[rules.ACCESS_TOKEN]},
            timeout_seconds=SECONDS,
            max_bytes=MAX_BYTES,
            # The body holds secrets, which are for this endpoint alone.
            follow_redirects=False,
        )


def _json_object(answer: messages.OutboundResponse) -> Mapping[str, Any]:
    """The object in an answer, regardless of its content type; empty when there is none."""
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


class TokenEndpoints:
    """The endpoints of every provider that the operator registered the platform at."""

    def __init__(
        self,
        outbound: OutboundClient,
        keys: KeyRing,
        providers: Mapping[str, ProviderSettings],
    ) -> None:
        self._outbound = outbound
        self._providers = providers
        self.keys = keys

    def of(self, name: ProviderName) -> TokenEndpoint:
        """The endpoints of one provider. Raises UnsupportedError."""
        client = rules.oauth_client(name, self._providers)
        if client is None:
            raise UnsupportedError(f"Sign-in with {name} is no longer available.")
        return TokenEndpoint(self._outbound, client)


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
    ) -> store.Connected:
        """A connection whose token is in force, and is not the one the provider `rejected`.

        Raises ConnectionUseError for one that was deleted or has to be authorized again,
        OutboundError and UnansweredError when the provider does not answer.
        """
        keys = self._endpoints.keys
        async with self._database.reading() as work:
            connection = await find_connected(work, keys, workspace_id, connection_id)
        if not _needs_renewal(connection, rejected, work.now):
            return connection
        renewal_lock = self._renewals.setdefault(connection_id, asyncio.Lock())
        async with renewal_lock, self._database.transaction() as work:
            await store.hold_connection(work, workspace_id, connection_id)
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
                    "The provider no longer accepts the connection. Authorize it again."
                ) from None
            await store.store_credentials(work, keys, workspace_id, connection_id, renewed)
            return connection._replace(credentials=renewed)


def _needs_renewal(found: store.Connected, rejected: str | None, now: datetime) -> bool:
    token = found.credentials.get(rules.ACCESS_TOKEN)
    return token is not None and (token == rejected or rules.is_stale(found.credentials, now))
