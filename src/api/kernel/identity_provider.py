"""Sign-in at an OpenID Connect provider: code with PKCE, state and nonce (ADR 0082).

Authlib writes and reads what the protocol says; the requests are ours, to the operator's own
provider. What a browser carries meanwhile is sealed in a cookie of that browser.
"""

import hmac
import json
import time
from dataclasses import dataclass
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

from api.kernel.sessions import Session, SessionVerifier
from runtime import base64url
from runtime.crypto import KeyRing, UnreadableError
from runtime.errors import UnauthorizedError, UpstreamError
from runtime.settings import Settings

SECONDS = 600
"""The time in which a person signs in at the provider."""
CALLBACK = "/sign-in/callback"
_SCOPE = "openid email profile"
_DISCOVERED_FOR = 300.0
_PLACE = "sign-in|browser|attempt"
_LONGEST = 1024 * 1024

_log = structlog.get_logger(__name__)


class SignInError(UnauthorizedError):
    """The provider did not sign the person in, or the answer is not one this browser asked for."""

    advice = "Begin again at /sign-in."

    def __init__(self, reason: str) -> None:
        super().__init__(f"You are not signed in: {reason}. Begin again.")


class ProviderError(UpstreamError):
    """The identity provider does not answer as OpenID Connect says."""

    advice = "Try again soon; then ask whoever runs the platform."

    def __init__(self) -> None:
        super().__init__("The identity provider cannot be reached, or answers wrongly.")


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
        """The attempt as the cookie carries it; nobody but us reads it."""
        values = [self.state, self.nonce, self.verifier, self.next, self.until]
        return base64url.encode(keys.seal(json.dumps(values).encode(), _PLACE))

    @classmethod
    def read(cls, keys: KeyRing, cookie: str | None) -> "Attempt":
        """The attempt of a cookie. Raises SignInError."""
        sealed = base64url.decode(cookie or "") or b""
        try:
            attempt = cls(*json.loads(keys.unseal(sealed, _PLACE)))
        except UnreadableError:
            raise SignInError(
                "this browser did not begin to sign in, or it took too long"
            ) from None
        if attempt.until < time.time():
            raise SignInError("it took too long")
        return attempt


class IdentityProvider:
    """The provider of `WORKSPACE_OIDC_ISSUER`, with the client that the console is to it."""

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
            raise SignInError("the provider refused it")
        try:
            return await self._tokens.verify(token["id_token"], nonce=attempt.nonce)
        except UnauthorizedError:
            raise SignInError("the provider's answer does not hold") from None

    def _code(self, attempt: Attempt, url: str) -> str:
        params = httpx2.URL(url).params
        if not hmac.compare_digest(params.get("state", "").encode(), attempt.state.encode()):
            raise SignInError("this browser did not begin to sign in")
        # An answer of another provider in the name of this one (RFC 9207).
        if params.get("iss", self._issuer) != self._issuer:
            raise SignInError("another provider answered")
        try:
            code: str = parse_authorization_code_response(url, attempt.state)["code"]
        except OAuth2Error:
            raise SignInError("the provider did not agree") from None
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
