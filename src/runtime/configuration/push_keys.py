"""The keys that sign pushes: the operator's at each provider that carries them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from runtime import base64url

_SCALAR_BYTES = 32


@dataclass(frozen=True, slots=True)
class VapidKey:
    """The key of an application server (RFC 8292), and whom a push service may write to."""

    subject: str
    public: str
    """As browsers take it: the uncompressed point in base64url."""
    private: ECKey = field(repr=False)

    @classmethod
    def parse(cls, scalar: str, subject: str) -> Self:
        """`scalar` is the private key: 32 bytes in base64url. Raises ValueError."""
        raw = base64url.decode(scalar.rstrip("="))
        if raw is None or len(raw) != _SCALAR_BYTES:
            raise ValueError("must be 32 bytes in base64url, as tools for Web Push print it")
        if not subject.startswith(("mailto:", "https://")):
            raise ValueError("needs a subject that starts with mailto: or https://")
        key = ec.derive_private_key(int.from_bytes(raw), ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return cls(subject, base64url.encode(point), ECKey.import_key(pem))

    def token(self, audience: str, expires: int) -> str:
        """Authenticates the sender to one push service, until a time in seconds since the epoch."""
        claims = {"aud": audience, "exp": expires, "sub": self.subject}
        return jwt.encode({"typ": "JWT", "alg": "ES256"}, claims, self.private)


@dataclass(frozen=True, slots=True)
class FcmAccount:
    """The service account of a Firebase project."""

    project: str
    email: str
    token_url: str
    private: RSAKey = field(repr=False)
    key_id: str | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """From the JSON file that the Firebase console gives. Raises ValueError."""
        try:
            account: dict[str, Any] = json.loads(path.read_text("utf-8"))
            key = RSAKey.import_key(account["private_key"])
            return cls(
                project=account["project_id"],
                email=account["client_email"],
                token_url=account["token_uri"],
                private=key,
                key_id=account.get("private_key_id"),
            )
        except (OSError, ValueError, KeyError, TypeError, JoseError):
            # Its text may quote the file.
            raise ValueError(f"{path} is not a valid Firebase service account file") from None

    def assertion(self, scope: str, now: int, seconds: int) -> str:
        """The text that the token endpoint changes for an access token (RFC 7523)."""
        header = {"typ": "JWT", "alg": "RS256"}
        if self.key_id is not None:
            header["kid"] = self.key_id
        claims = {
            "iss": self.email,
            "scope": scope,
            "aud": self.token_url,
            "iat": now,
            "exp": now + seconds,
        }
        return jwt.encode(header, claims, self.private, algorithms=["RS256"])


@dataclass(frozen=True, slots=True)
class ApnsKey:
    """A token signing key of an Apple developer team, for one app."""

    key_id: str
    team_id: str
    topic: str
    private: ECKey = field(repr=False)

    @classmethod
    def read(cls, path: Path, key_id: str, team_id: str, topic: str) -> Self:
        """From the `.p8` file that the developer portal gives. Raises ValueError."""
        try:
            key = ECKey.import_key(path.read_text("utf-8"))
        except (OSError, ValueError, TypeError, JoseError):
            raise ValueError(f"{path} is not a valid APNs key file (.p8)") from None
        return cls(key_id, team_id, topic, key)

    def token(self, now: int) -> str:
        """Authenticates the sender; APNs accepts it for an hour."""
        header = {"alg": "ES256", "kid": self.key_id}
        return jwt.encode(header, {"iss": self.team_id, "iat": now}, self.private)
