"""Session tokens without an identity provider: a local issuer, kept in the state directory.

The issuer signs with a key that is in that directory, and publishes the public half as a JWKS file.
The API verifies its tokens like tokens of any provider.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey

from cli.supervisor.state import StateDir
from runtime.configuration.sections import DEVELOPMENT_ISSUER

AUDIENCE = "workspace"

_LIFETIME_SECONDS = 30 * 24 * 3600
_PRIVATE = "development-issuer.json"
_PUBLISHED = "development-jwks.json"


@dataclass(frozen=True, slots=True)
class DevelopmentIssuer:
    """An issuer whose `issuer`, `audience` and `jwks_path` are the API's OIDC settings."""

    issuer: str
    audience: str
    jwks_path: Path
    key: ECKey

    def mint(
        self, email: str, name: str | None = None, *, lifetime_seconds: int = _LIFETIME_SECONDS
    ) -> str:
        """A session token of the person with this e-mail address."""
        claims: dict[str, Any] = {"sub": email.lower(), "email": email}
        if name is not None:
            claims["name"] = name
        return mint_session(
            self.key, self.issuer, self.audience, claims, lifetime_seconds=lifetime_seconds
        )


def mint_session(
    key: ECKey, issuer: str, audience: str, claims: dict[str, Any], *, lifetime_seconds: int
) -> str:
    """A signed JWT (ES256) that is valid from now on."""
    now = int(time.time())
    header = {"alg": "ES256", "kid": key.kid}
    standard = {"iss": issuer, "aud": audience, "iat": now, "exp": now + lifetime_seconds}
    return jwt.encode(header, {**standard, **claims}, key, algorithms=["ES256"])


def is_issuer(directory: Path) -> bool:
    """True when an issuer's key lives in `directory`."""
    return (directory / _PRIVATE).is_file()


def ensure_issuer(directory: Path) -> DevelopmentIssuer:
    """The issuer whose key lives in `directory`, made on the first call (mode 0600)."""
    private = directory / _PRIVATE
    published = directory / _PUBLISHED
    if not private.exists():
        key = ECKey.generate_key("P-256", auto_kid=True)
        _write(private, json.dumps(key.as_dict(private=True)))
    key = ECKey.import_key(json.loads(private.read_text("utf-8")))
    public = {**key.as_dict(private=False), "use": "sig", "alg": "ES256"}
    _write(published, json.dumps({"keys": [public]}))
    return DevelopmentIssuer(DEVELOPMENT_ISSUER, AUDIENCE, published, key)


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and for our eyes only."""
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


EMAIL = "owner@localhost"
NAME = "Owner"


@dataclass(frozen=True, slots=True)
class DevelopmentSessions:
    """The local issuer, unless the operator configured a provider."""

    issuer: DevelopmentIssuer | None

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings by which the API trusts the issuer."""
        if self.issuer is None:
            return {}
        return {
            "WORKSPACE_OIDC_ISSUER": self.issuer.issuer,
            "WORKSPACE_OIDC_AUDIENCE": self.issuer.audience,
            "WORKSPACE_OIDC_JWKS": str(self.issuer.jwks_path),
        }

    def mint(self) -> str:
        """A session token of the first workspace's owner; empty with a provider of one's own."""
        return "" if self.issuer is None else self.issuer.mint(EMAIL, NAME)


def development_sessions(state: StateDir) -> DevelopmentSessions:
    """The issuer whose key lives in the state directory."""
    provided = os.environ.get("WORKSPACE_OIDC_ISSUER")
    return DevelopmentSessions(None if provided else ensure_issuer(state.root))
