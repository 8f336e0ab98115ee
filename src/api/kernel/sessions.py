"""Sessions of an OpenID Connect provider: JWTs checked against its keys (decisions C4)."""

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import structlog
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from api.kernel.credentials import unauthorized
from runtime.crypto import fingerprint
from runtime.errors import UnavailableError

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
            raise UnavailableError("The identity provider's keys cannot be read; try again soon.")
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
