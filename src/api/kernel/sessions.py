"""Credentials of a caller: API keys, sessions of an OpenID Connect provider, and sign-in at it."""

import asyncio
import hmac
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import structlog
from authlib.common.security import generate_token
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749.parameters import (
    parse_authorization_code_response,
    prepare_grant_uri,
    prepare_token_request,
)
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from models.people.api_keys import PREFIX, is_well_formed
from runtime import base64url
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing, UnreadableError, fingerprint
from runtime.errors import UnauthorizedError, UnavailableError, UpstreamError

_MAX_TOKEN = 8192


@dataclass(frozen=True, slots=True)
class KeyToken:
    """A well-formed API key."""

    token: str

    def caller_name(self) -> bytes:
        """A name for the caller that is no secret."""
        return fingerprint(self.token.encode())


@dataclass(frozen=True, slots=True)
class SessionToken:
    """Something that may be a session's JWT."""

    token: str


def unauthorized() -> UnauthorizedError:
    """The one answer to every credential that does not let its bearer in."""
    return UnauthorizedError(
        "The credential is missing, invalid, expired or revoked."
        " Send Authorization: Bearer <API key>."
    )


def read_credential(headers: Iterable[tuple[bytes, bytes]]) -> KeyToken | SessionToken:
    """The bearer token of the only `Authorization` header; raises UnauthorizedError."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        raise unauthorized()
    scheme, _, rest = values[0].partition(b" ")
    if scheme.lower() != b"bearer" or not rest.isascii() or len(rest) > _MAX_TOKEN:
        raise unauthorized()
    token = rest.decode("ascii")
    if token.startswith(PREFIX):
        if not is_well_formed(token):
            raise unauthorized()
        return KeyToken(token)
    if token.count(".") != 2:
        raise unauthorized()
    return SessionToken(token)


_ALGORITHMS = ("RS256", "ES256")
_LEEWAY_SECONDS = 60
_KEYS_TTL_SECONDS = 300.0
_LATEST = 253_402_300_000
"""The last moment, in seconds since 1970, that a date can tell."""
_REFETCH_SECONDS = 10.0
"""An unknown key id makes us look again, but not more often than this."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """The provider's claims; `platform_admin` is None when it says nothing about it."""

    issuer: str
    subject: str
    email: str | None
    name: str | None
    platform_admin: bool | None
    expires_at: datetime

    def caller_name(self) -> bytes:
        """The name of the caller, whatever the session's own token is."""
        return fingerprint(self.issuer.encode(), self.subject.encode())


class SessionVerifier:
    """Checks tokens of one issuer for one audience."""

    def __init__(self, issuer: str, audience: str, jwks: str, admin_claim: str) -> None:
        self._issuer = issuer
        self._admin_claim = admin_claim
        self._keys = _PublishedKeys(jwks)
        self._registry = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": audience},
            sub={"essential": True},
            exp={"essential": True},
        )

    async def verify(self, token: str, *, nonce: str | None = None) -> Session:
        """The session a token proves; raises UnauthorizedError or UnavailableError.

        With a `nonce` it is the token of one sign-in, which must have it.
        """
        try:
            claims = self._claims_of(token, await self._keys.current())
        except InvalidKeyIdError:
            claims = await self._claims_by_new_keys(token)
        if nonce is not None and claims.get("nonce") != nonce:
            raise unauthorized()
        return self._session(claims)

    async def _claims_by_new_keys(self, token: str) -> dict[str, Any]:
        try:
            return self._claims_of(token, await self._keys.refetched())
        except InvalidKeyIdError:
            raise unauthorized() from None

    def _claims_of(self, token: str, keys: KeySet) -> dict[str, Any]:
        try:
            claims = jwt.decode(token, keys, algorithms=_ALGORITHMS).claims
            self._registry.validate(claims)
        except InvalidKeyIdError:
            raise
        except (JoseError, ValueError, TypeError, RecursionError):
            # The library also lets malformed headers and payloads surface as plain errors.
            raise unauthorized() from None
        return claims

    def _session(self, claims: dict[str, Any]) -> Session:
        subject = _text(claims["sub"])
        if subject is None:
            raise unauthorized()
        admin = claims.get(self._admin_claim)
        verified = claims.get("email_verified") is not False
        return Session(
            issuer=self._issuer,
            subject=subject,
            email=_text(claims.get("email")) if verified else None,
            name=_text(claims.get("name")),
            platform_admin=admin if isinstance(admin, bool) else None,
            expires_at=datetime.fromtimestamp(min(claims["exp"], _LATEST), UTC),
        )


class _PublishedKeys:
    """The provider's key set, from a file or a URL, read again when it is old or lacks a key."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._keys: KeySet | None = None
        self._read_at = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> KeySet:
        if self._keys is None or time.monotonic() - self._read_at > _KEYS_TTL_SECONDS:
            await self._read(_KEYS_TTL_SECONDS)
        return self._held()

    async def refetched(self) -> KeySet:
        """The keys after one more look, for a token whose key we did not know."""
        await self._read(_REFETCH_SECONDS)
        return self._held()

    def _held(self) -> KeySet:
        if self._keys is None:
            raise UnavailableError("The identity provider is unavailable. Try again soon.")
        return self._keys

    async def _read(self, older_than: float) -> None:
        async with self._lock:
            age = time.monotonic() - self._read_at
            if self._read_at and age < (older_than if self._keys else _REFETCH_SECONDS):
                return
            self._read_at = time.monotonic()
            try:
                self._keys = KeySet.import_key_set(json.loads(await self._text()))
            except (OSError, httpx2.HTTPError, JoseError, ValueError, KeyError) as error:
                _log.warning("jwks_unreadable", error_type=type(error).__name__)

    async def _text(self) -> str:
        if not self._source.startswith(("http://", "https://")):
            return await asyncio.to_thread(Path(self._source).read_text, "utf-8")
        async with httpx2.AsyncClient(timeout=5.0, follow_redirects=False) as client:
            response = await client.get(self._source)
            response.raise_for_status()
            return response.text


def _text(value: object) -> str | None:
    """A claim that is a text PostgreSQL can store and index, else None."""
    if not isinstance(value, str) or not 0 < len(value) <= 320 or "\x00" in value:
        return None
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


SECONDS = 600
"""The time in which a person signs in at the provider."""
CALLBACK = "/sign-in/callback"
_SCOPE = "openid email profile"
_DISCOVERED_FOR = 300.0
_PLACE = "sign-in|browser|attempt"
_LONGEST = 1024 * 1024


class SignInError(UnauthorizedError):
    """The provider did not sign the person in, or the answer is not one this browser asked for."""

    advice = "Start again at /sign-in."

    def __init__(self, reason: str) -> None:
        super().__init__(f"Sign-in failed: {reason}. Start again.")


class ProviderError(UpstreamError):
    """The identity provider does not answer as OpenID Connect says."""

    advice = "Try again soon. If it persists, contact an administrator."

    def __init__(self) -> None:
        super().__init__("The identity provider is unavailable or returned an invalid response.")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to the provider and back: what proves that the answer is for this browser."""

    state: str
    nonce: str
    verifier: str
    next: str
    until: float

    @classmethod
    def begin(cls, target: str) -> "Attempt":
        """Take fresh secrets, for a way that ends at `target`."""
        secrets = (generate_token(43), generate_token(43), generate_token(64))
        return cls(*secrets, target, time.time() + SECONDS)

    def sealed(self, keys: KeyRing) -> str:
        """The attempt as the cookie carries it; no one but us reads it."""
        values = [self.state, self.nonce, self.verifier, self.next, self.until]
        return base64url.encode(keys.seal(json.dumps(values).encode(), _PLACE))

    @classmethod
    def read(cls, keys: KeyRing, cookie: str | None) -> "Attempt":
        """The attempt of a cookie. Raises SignInError."""
        sealed = base64url.decode(cookie or "") or b""
        try:
            attempt = cls(*json.loads(keys.unseal(sealed, _PLACE)))
        except UnreadableError:
            raise SignInError("it was not started in this browser, or took too long") from None
        if attempt.until < time.time():
            raise SignInError("it took too long")
        return attempt


class IdentityProvider:
    """The provider of `WORKSPACE_OIDC_ISSUER`, with the client that the console is to it.

    Authlib writes and reads what the protocol says; the requests are ours, to the operator's own
    provider. What a browser carries meanwhile is sealed in a cookie of that browser (ADR 0082).
    """

    def __init__(self, settings: Settings) -> None:
        assert settings.oidc_issuer
        assert settings.oidc_client_id
        assert settings.oidc_jwks
        self._issuer = settings.oidc_issuer
        self._client_id = settings.oidc_client_id
        secret = settings.oidc_client_secret
        self._secret = None if secret is None else secret.get_secret_value()
        self._redirect = f"{settings.public_url}{CALLBACK}"
        self._tokens = SessionVerifier(
            self._issuer, self._client_id, settings.oidc_jwks, settings.platform_admin_claim
        )
        self._found: dict[str, Any] = {}
        self._found_at = 0.0

    @property
    def host(self) -> str:
        """The name under which people know it."""
        return httpx2.URL(self._issuer).host

    async def authorization_url(self, attempt: Attempt) -> str:
        """The page of the provider on which a person signs in. Raises ProviderError."""
        url: str = prepare_grant_uri(
            await self._endpoint("authorization_endpoint"),
            client_id=self._client_id,
            response_type="code",
            redirect_uri=self._redirect,
            scope=_SCOPE,
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
        )
        return url

    async def signed_in(self, attempt: Attempt, url: str) -> Session:
        """The person whom the provider sent back to `url`. Raises SignInError, ProviderError."""
        code = self._code(attempt, url)
        endpoint = await self._endpoint("token_endpoint")
        method = "none" if self._secret is None else "client_secret_basic"
        body = prepare_token_request(
            "authorization_code",
            code=code,
            redirect_uri=self._redirect,
            code_verifier=attempt.verifier,
        )
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        auth = ClientAuth(self._client_id, self._secret, method)
        endpoint, headers, body = auth.prepare("POST", endpoint, headers, body)
        token = await self._asked("POST", endpoint, headers, body)
        if not isinstance(token.get("id_token"), str):
            raise SignInError("the provider rejected it")
        try:
            return await self._tokens.verify(token["id_token"], nonce=attempt.nonce)
        except UnauthorizedError:
            raise SignInError("the response of the provider is invalid") from None

    def _code(self, attempt: Attempt, url: str) -> str:
        params = httpx2.URL(url).params
        if not hmac.compare_digest(params.get("state", "").encode(), attempt.state.encode()):
            raise SignInError("it was not started in this browser")
        # An answer of another provider in the name of this one (RFC 9207).
        if params.get("iss", self._issuer) != self._issuer:
            raise SignInError("the response is from another provider")
        try:
            code: str = parse_authorization_code_response(url, attempt.state)["code"]
        except OAuth2Error:
            raise SignInError("the provider denied it") from None
        return code

    async def _endpoint(self, name: str) -> str:
        """An address that the provider publishes (OpenID Connect Discovery)."""
        if time.monotonic() - self._found_at > _DISCOVERED_FOR or not self._found:
            path = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
            found = await self._asked("GET", path, {"Accept": "application/json"}, "")
            if found.get("issuer") != self._issuer:
                raise ProviderError
            self._found, self._found_at = found, time.monotonic()
        url = self._found.get(name)
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise ProviderError
        return url

    async def _asked(
        self, method: str, url: str, headers: dict[str, str], body: str
    ) -> dict[str, Any]:
        try:
            async with httpx2.AsyncClient(timeout=10.0, follow_redirects=False) as client:
                answer = await client.request(method, url, headers=headers, content=body)
            if answer.status_code >= 500 or len(answer.content) > _LONGEST:
                raise ProviderError
            document = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            _log.warning("identity_provider_unusable", error_type=type(error).__name__)
            raise ProviderError from None
        if not isinstance(document, dict):
            raise ProviderError
        return document
