"""The token and revocation endpoints of a provider (RFC 6749, 4.1.3 and 6; RFC 7009)."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from models.sources.authorizations.rules import (
    ACCESS_TOKEN,
    REFRESH_TOKEN,
    OAuthClient,
    credentials_of,
    oauth_client,
)
from models.sources.connections.providers import ProviderName
from runtime.clock import utc_now
from runtime.crypto import KeyRing
from runtime.errors import UnsupportedError
from runtime.outbound.authentication import authentication
from runtime.outbound.client import OutboundClient
from runtime.outbound.encoding import FORM, JSON
from runtime.outbound.messages import OutboundRequest, OutboundResponse
from runtime.provider_settings import ProviderSettings

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

    def __init__(self, outbound: OutboundClient, client: OAuthClient) -> None:
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
        if REFRESH_TOKEN not in credentials:
            raise NotAcceptedError
        grant = {"grant_type": "refresh_token", "refresh_token": credentials[REFRESH_TOKEN]}
        return await self._tokens(grant, credentials)

    async def revoke(self, credentials: Mapping[str, str]) -> None:
        """End a token, and with it what was made from it. Raises UnansweredError."""
        if self._client.revocation_url is None:
            return
        if self._client.provider.revocation == "github":
            request = self._github_revocation(credentials)
        else:
            token = credentials.get(REFRESH_TOKEN) or credentials[ACCESS_TOKEN]
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
        found = credentials_of(body, before, utc_now()) if answer.status == 200 else None
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
            body={"access_token": credentials[ACCESS_TOKEN]},
            timeout_seconds=SECONDS,
            max_bytes=MAX_BYTES,
            # The body holds secrets, which are for this endpoint alone.
            follow_redirects=False,
        )


def _json_object(answer: OutboundResponse) -> Mapping[str, Any]:
    """The object in an answer; empty when there is none, whatever its type says."""
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
        client = oauth_client(name, self._providers)
        if client is None:
            raise UnsupportedError(f"Nobody can sign in at {name} here any more.")
        return TokenEndpoint(self._outbound, client)
