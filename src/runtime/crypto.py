"""Keys derived from the master secret, their uses, and columns with sealed values.

One secret, three uses, kept apart by HKDF labels (RFC 5869): the pepper under which API keys are
digested, the key that signs cursors, and the AES-GCM key that encrypts stored secrets. An earlier
master secret stays readable: new values are written under the first one only.
"""

import hmac
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy.dialects.postgresql import JSONB

KEY_ID_BYTES = 4
"""The bytes at the begin of a sealed value that say which key it is under."""
_NONCE_BYTES = 12


class UnreadableError(Exception):
    """A sealed value was altered, moved to another place, or its key is no longer configured."""

    retryable = False


@dataclass(frozen=True, slots=True)
class _Keys:
    id: bytes
    pepper: bytes
    cursor: bytes
    cipher: AESGCM


class KeyRing:
    """The keys that are derived from the master secrets, the current one's first."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._all = tuple(_derive_all(secret.encode()) for secret in secrets)
        self._by_id = {keys.id: keys for keys in self._all}
        self._current = self._all[0]

    @property
    def ids(self) -> Sequence[bytes]:
        """The ids of the keys, the current one's first; an id says nothing of its key."""
        return [keys.id for keys in self._all]

    @property
    def current_id(self) -> bytes:
        """The id of the key under which everything new is written."""
        return self._current.id

    def digest(self, token: bytes) -> bytes:
        """HMAC-SHA-256 of a token under the current pepper."""
        return hmac.digest(self._current.pepper, token, "sha256")

    def digests(self, token: bytes) -> list[bytes]:
        """The digests a stored token may have, the current pepper's first."""
        return [hmac.digest(keys.pepper, token, "sha256") for keys in self._all]

    def sign(self, message: bytes) -> bytes:
        """A signature for what a client carries and must not alter."""
        return hmac.digest(self._current.cursor, message, "sha256")

    def verify(self, message: bytes, signature: bytes, length: int = 32) -> bool:
        """True when one of our keys made the first `length` bytes of this signature."""
        return any(
            hmac.compare_digest(hmac.digest(keys.cursor, message, "sha256")[:length], signature)
            for keys in self._all
        )

    def seal(self, plaintext: bytes, place: str) -> bytes:
        """Encrypt with AES-256-GCM; `place` (`table|row id|column`) is bound to the result."""
        nonce = os.urandom(_NONCE_BYTES)
        keys = self._current
        return keys.id + nonce + keys.cipher.encrypt(nonce, plaintext, place.encode())

    def unseal(self, sealed: bytes, place: str) -> bytes:
        """Decrypt what `seal` made for the same place; raises UnreadableError."""
        key_id, rest = sealed[:KEY_ID_BYTES], sealed[KEY_ID_BYTES:]
        keys = self._by_id.get(key_id)
        if keys is None:
            raise UnreadableError("The value was encrypted under a key that is not configured.")
        try:
            return keys.cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], place.encode())
        except (InvalidTag, ValueError) as error:  # a nonce cut short is a ValueError
            raise UnreadableError("The value was altered or belongs to another place.") from error


def _derive_all(secret: bytes) -> _Keys:
    return _Keys(
        id=_derive(secret, "key id", KEY_ID_BYTES),
        pepper=_derive(secret, "api key pepper"),
        cursor=_derive(secret, "cursor signature"),
        cipher=AESGCM(_derive(secret, "encryption at rest")),
    )


def _derive(secret: bytes, label: str, length: int = 32) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=f"workspace/{label}/1".encode()).derive(secret)


def fingerprint(*parts: bytes) -> bytes:
    """SHA-256 of parts, each preceded by its length so that no two lists share one."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


_SEALED = "sealed"

_MOMENTS = ("created_at", "registered_at", "updated_at")
"""Columns of which the first that a table has is the time of a row's creation."""


@dataclass(frozen=True, slots=True)
class Seal:
    """The description of a sealed value.

    `place` takes a row with the columns of its key and `place_columns`. `digest` is a column with a
    digest of the same value. `member` is the member of a JSON object that holds the value in
    base64. Short-lived values expire within about a day, so that a rotation need not rewrite them.
    """

    place: Callable[[Any], str]
    place_columns: tuple[str, ...] = ()
    digest: str | None = None
    member: str | None = None
    short_lived: bool = False


def sealed(
    place: Callable[[Any], str],
    place_columns: tuple[str, ...] = (),
    *,
    digest: str | None = None,
    member: str | None = None,
    short_lived: bool = False,
) -> dict[str, Any]:
    """The arguments of a column that holds a sealed value (see `Seal`)."""
    return {"info": {_SEALED: Seal(place, place_columns, digest, member, short_lived)}}


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column, or a member of its JSON objects, with sealed values.

    A change of the master secret finds by these descriptions the values under the previous key.
    """

    column: sa.Column[Any]
    seal: Seal

    @property
    def name(self) -> str:
        """The kind of value, as operators see it."""
        return f"{self.column.table.name}.{self.column.name}"

    @property
    def key(self) -> Sequence[sa.Column[Any]]:
        """The columns of the primary key."""
        return list(self.column.table.primary_key.columns)

    @property
    def moment(self) -> sa.Column[Any]:
        """The column with the time of a row's creation."""
        columns = self.column.table.columns
        return next(columns[name] for name in _MOMENTS if name in columns)

    @property
    def value(self) -> sa.ColumnElement[Any]:
        """The sealed bytes; null where a row has none."""
        if self.seal.member is None:
            return self.column
        return sa.func.decode(self.column[self.seal.member].astext, "base64", type_=sa.LargeBinary)

    @property
    def key_id(self) -> sa.ColumnElement[Any]:
        """The id of the key that a value is sealed under."""
        return key_id_of(self.value)

    def holding(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The content of the column with another value."""
        if self.seal.member is None:
            return value
        text = sa.func.replace(sa.func.encode(value, "base64"), "\n", "")
        member = sa.func.jsonb_build_object(sa.literal(self.seal.member), text)
        return sa.cast(self.column.op("||")(member), JSONB)


def key_id_of(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The id of the key at the begin of a sealed value."""
    return sa.func.substr(value, 1, KEY_ID_BYTES, type_=sa.LargeBinary)


def sealed_columns(metadata: sa.MetaData) -> Sequence[SealedColumn]:
    """Every column with sealed values, out of the tables imported so far, by name."""
    columns = (
        SealedColumn(column, column.info[_SEALED])
        for table in metadata.tables.values()
        for column in table.columns
        if _SEALED in column.info
    )
    return sorted(columns, key=lambda one: one.name)
