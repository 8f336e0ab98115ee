"""The providers a user signs in to, and the request that sends them there.

An authorization code with PKCE (RFC 6749, 4.1; RFC 7636): the code is of no use to a party that
reads it in transit.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from models.core.base import Id
from models.sources.connections.providers import ProviderName
from runtime.configuration.sections import ProviderSettings

LIFETIME = timedelta(minutes=10)
"""The time a user has to sign in."""
MARGIN = timedelta(minutes=1)
"""A token is renewed so long before it expires."""
CALLBACK = "/integrations/oauth/callback"
"""The path that providers send users back to."""

ACCESS_TOKEN, REFRESH_TOKEN, EXPIRES_AT = "accessToken", "refreshToken", "expiresAt"
"""The credentials of a connection that was authorized."""


@dataclass(frozen=True, slots=True)
class OAuthProvider:
    """The way a provider signs users in.

    `client` is how the platform proves which client it is at the token endpoint (RFC 6749, 2.3.1),
    `body` how it writes requests there. `revocation` says which call ends a token: RFC 7009, or one
    of GitHub's own.
    """

    authorization_url: str
    token_url: str
    scopes: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    client: Literal["basic", "form"] = "basic"
    body: Literal["form", "json"] = "form"
    revocation_url: str | None = None
    revocation: Literal["rfc7009", "github"] = "rfc7009"


OAUTH_PROVIDERS: Mapping[ProviderName, OAuthProvider] = MappingProxyType(
    {
        ProviderName.GITHUB: OAuthProvider(
            "https://github.com/login/oauth/authorize",
            "https://github.com/login/oauth/access_token",
            scopes=("repo",),
            client="form",
            revocation_url="https://api.github.com/applications/{client_id}/token",
            revocation="github",
        ),
        ProviderName.NOTION: OAuthProvider(
            "https://api.notion.com/v1/oauth/authorize",
            "https://api.notion.com/v1/oauth/token",
            parameters={"owner": "user"},
            body="json",
            revocation_url="https://api.notion.com/v1/oauth/revoke",
        ),
        ProviderName.AIRTABLE: OAuthProvider(
            "https://airtable.com/oauth2/v1/authorize",
            "https://airtable.com/oauth2/v1/token",
            scopes=("data.records:read", "schema.bases:read"),
        ),
        ProviderName.GOOGLE_DRIVE: OAuthProvider(
            "https://accounts.google.com/o/oauth2/v2/auth",
            "https://oauth2.googleapis.com/token",
            scopes=(
                "https://www.googleapis.com/auth/drive.readonly",
                "https://www.googleapis.com/auth/forms.body.readonly",
            ),
            # Else there is no refresh token, or only one at the first consent.
            parameters={"access_type": "offline", "prompt": "consent"},
            client="form",
            revocation_url="https://oauth2.googleapis.com/revoke",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The platform as a client of a provider, and the endpoints of the provider."""

    provider: OAuthProvider
    client_id: str
    client_secret: str | None = field(repr=False)
    scopes: Sequence[str]
    authorization_url: str
    token_url: str
    revocation_url: str | None


def oauth_client(
    name: ProviderName, settings: Mapping[str, ProviderSettings]
) -> OAuthClient | None:
    """The client that the operator registered at a provider, or None."""
    provider, registration = OAUTH_PROVIDERS.get(name), settings.get(name.value)
    if provider is None or registration is None or registration.client_id is None:
        return None
    secret = registration.client_secret
    return OAuthClient(
        provider=provider,
        client_id=registration.client_id,
        client_secret=None if secret is None else secret.get_secret_value(),
        scopes=provider.scopes if registration.scopes is None else registration.scopes,
        authorization_url=registration.authorization_url or provider.authorization_url,
        token_url=registration.token_url or provider.token_url,
        revocation_url=registration.revocation_url or provider.revocation_url,
    )


class Attempt(NamedTuple):
    """The two secrets of one authorization: what comes back, and what proves who asked."""

    state: str
    verifier: str


def new_attempt(workspace_id: Id) -> Attempt:
    """256 random bits each (RFC 6749, 10.10; RFC 7636, 4.1).

    The state begins with the workspace, which the page that a user comes back to asks for it.
    """
    return Attempt(f"{workspace_id}.{secrets.token_urlsafe(32)}", secrets.token_urlsafe(32))


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636, 4.2)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def authorization_url(client: OAuthClient, redirect_uri: str, attempt: Attempt) -> str:
    """The URL to which a user is sent to sign in."""
    parameters = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": attempt.state,
        "code_challenge": challenge_of(attempt.verifier),
        "code_challenge_method": "S256",
        **client.provider.parameters,
    }
    if client.scopes:
        parameters["scope"] = " ".join(client.scopes)
    separator = "&" if "?" in client.authorization_url else "?"
    return f"{client.authorization_url}{separator}{urlencode(parameters)}"


def credentials_of(
    answer: Mapping[str, Any], before: Mapping[str, str], now: datetime
) -> dict[str, str] | None:
    """The credentials in a token answer (RFC 6749, 5.1), or None when it holds no token.

    A provider that gives no new refresh token leaves the one `before` in force (section 6).
    """
    token, refresh = answer.get("access_token"), answer.get("refresh_token")
    if not isinstance(token, str) or not token:
        return None
    credentials = {ACCESS_TOKEN: token}
    refresh = refresh if isinstance(refresh, str) and refresh else before.get(REFRESH_TOKEN)
    if refresh is not None:
        credentials[REFRESH_TOKEN] = refresh
    seconds = answer.get("expires_in")
    if isinstance(seconds, int | float) and 0 < seconds < timedelta(days=3650).total_seconds():
        credentials[EXPIRES_AT] = (now + timedelta(seconds=seconds)).isoformat()
    return credentials


def is_stale(credentials: Mapping[str, str], now: datetime) -> bool:
    """True when a token has expired, or is about to."""
    text = credentials.get(EXPIRES_AT)
    return text is not None and datetime.fromisoformat(text) - MARGIN <= now
