"""Tokens of providers where users signed in: for a code, renewed, revoked (RFC 6749, RFC 7009)."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from activities.connections import ConnectionUseError, find_connected
from activities.heartbeats import keep_open
from models.core.base import Id
from models.sources.authorizations import rules
from models.sources.connections.providers import ProviderName
from models.sources.connections.store import Connected, hold_connection, store_credentials
from runtime.clock import utc_now
from runtime.configuration.sections import ProviderSettings
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.errors import UnsupportedError
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import FORM, JSON, OutboundRequest, OutboundResponse, authentication

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

    def _request(self, url: str, fields: Mapping[str, str]) -> OutboundRequest:
        client, headers, body = self._client, {"Accept": JSON}, dict(fields)
        if client.provider.client == "basic" and client.client_secret is not None:
            # Form-encoded before they are joined (RFC 6749, 2.3.1).
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
            headers |= authentication("basic", pair)
        else:
            body["client_id"] = client.client_id
            if client.client_secret is not None:
                body["client_secret"] = client.client_secret
        headers["Content-Type"] = FORM if client.provider.body == "form" else JSON
        return OutboundRequest(
            method="POST",
            url=url,
            headers=headers,
            body=body,
            timeout_seconds=SECONDS,
            max_bytes=MAX_BYTES,
            # The body holds secrets, which are for this endpoint alone.
            follow_redirects=False,
        )

    def _github_revocation(self, credentials: Mapping[str, str]) -> OutboundRequest:
        """GitHub REST API, "Delete an app token"."""
        client = self._client
        assert client.revocation_url is not None, "the caller looked"
        return OutboundRequest(
            method="DELETE",
            url=client.revocation_url.replace("{client_id}", quote(client.client_id, safe="")),
            headers={
                "Accept": JSON,
                **authentication("basic", f"{client.client_id}:{client.client_secret or ''}"),
            },
            body={"access_token": credentials[rules.ACCESS_TOKEN]},
            timeout_seconds=SECONDS,
            max_bytes=MAX_BYTES,
            # The body holds secrets, which are for this endpoint alone.
            follow_redirects=False,
        )


def _json_object(answer: OutboundResponse) -> Mapping[str, Any]:
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
    ) -> Connected:
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
                    "The provider no longer accepts the connection. Authorize it again."
                ) from None
            await store_credentials(work, keys, workspace_id, connection_id, renewed)
            return connection._replace(credentials=renewed)


def _needs_renewal(found: Connected, rejected: str | None, now: datetime) -> bool:
    token = found.credentials.get(rules.ACCESS_TOKEN)
    return token is not None and (token == rejected or rules.is_stale(found.credentials, now))
