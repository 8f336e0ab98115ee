"""A browser that subscribed to Web Push: it reads what was encrypted for it (RFC 8291)."""

import json
from dataclasses import dataclass, field
from os import urandom
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from runtime import base64url
from runtime.configuration.push_keys import VapidKey

VAPID = VapidKey.parse(base64url.encode(bytes(range(1, 33))), "mailto:push@example.test")
"""The key of the platform in tests."""


@dataclass(frozen=True, slots=True)
class Browser:
    """One subscription, at this endpoint."""

    endpoint: str
    private: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    secret: bytes = field(default_factory=lambda: urandom(16))

    @property
    def point(self) -> bytes:
        public = self.private.public_key()
        return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def token(self) -> str:
        """The subscription as JavaScript writes it."""
        keys = {"p256dh": base64url.encode(self.point), "auth": base64url.encode(self.secret)}
        return json.dumps({"endpoint": self.endpoint, "expirationTime": None, "keys": keys})

    def read(self, content: bytes) -> Any:
        """The message in a body of the coding aes128gcm (RFC 8188, RFC 8291)."""
        salt, length = content[:16], content[20]
        sender, sealed = content[21 : 21 + length], content[21 + length :]
        assert int.from_bytes(content[16:20]) >= len(sealed), "one record"
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        info = b"WebPush: info\0" + self.point + sender
        secret = _derive(self.private.exchange(ec.ECDH(), theirs), self.secret, info, 32)
        key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
        plain = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert plain.endswith(b"\x02"), "the last record"
        return json.loads(plain[:-1])


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=salt, info=info).derive(secret)
