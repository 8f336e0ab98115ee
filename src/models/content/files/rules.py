"""The names a file may have, the types it may claim, and the tokens that open its bytes."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from models.core.base import Id
from runtime import base64url
from runtime.crypto import KeyRing, fingerprint

LONGEST_NAME = 255
_LONGEST_SUFFIX = 32
_NAMELESS = "file"

UNKNOWN_TYPE = "application/octet-stream"
_LONGEST_TYPE = 255
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[ !#-\[\]-~]*"))*')

_MAC_BYTES = 16
_LINK_BYTES = 16
_NO_LINK = bytes(_LINK_BYTES)
_EXPIRY_BYTES = 7

URL_LASTS = timedelta(days=1)
_SAME_URL = timedelta(hours=1)
"""Answers so close together mostly give the same URL, which browsers then have in store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bytes that are in the object store, and what they are said to be."""

    name: str
    mime_type: str
    byte_size: int
    sha256: bytes
    object_key: str

    @property
    def summary(self) -> dict[str, str]:
        """The facts that make two uploads the same one."""
        return {"sha256": self.sha256.hex(), "name": self.name, "mimeType": self.mime_type}


def file_name(text: str) -> str:
    """The name a file is stored under: one path segment of at most 255 characters.

    Directories, control characters and the marks that turn the direction of text are dropped, so
    that no name says where to be written or looks like another.
    """
    segment = re.split(r"[/\\]", unicodedata.normalize("NFC", text))[-1]
    name = "".join(c for c in segment if unicodedata.category(c) not in _UNSEEN).strip()
    if name.strip(".") == "":
        return _NAMELESS
    if len(name) <= LONGEST_NAME:
        return name
    suffix = PurePosixPath(name).suffix
    if len(suffix) > _LONGEST_SUFFIX:
        suffix = ""
    return name[: LONGEST_NAME - len(suffix)] + suffix


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def media_type(declared: str | None) -> str:
    """The type a client declared if it has the form of one (RFC 9110, 8.3.1)."""
    text = (declared or "").strip()
    if len(text) > _LONGEST_TYPE or not _MEDIA_TYPE.fullmatch(text):
        return UNKNOWN_TYPE
    essence, separator, parameters = text.partition(";")
    return essence.lower() + separator + parameters


@dataclass(frozen=True, slots=True)
class AssetClaim:
    """The claim of a genuine asset token: when it ends, and the share link it also ends with."""

    expires_at: datetime
    share_link_id: Id | None = None


def answered_claim(now: datetime) -> AssetClaim:
    """The claim of a URL in an answer: it lasts a day, and up to an hour longer."""
    begun = int(now.timestamp()) // _SAME_URL.seconds * _SAME_URL.seconds
    return AssetClaim(datetime.fromtimestamp(begun, UTC) + _SAME_URL + URL_LASTS)


def download_url(keys: KeyRing, workspace_id: Id, file_id: Id, claim: AssetClaim) -> str:
    """The path that gives a file's bytes without any other credential (interface.md#stored-file).

    It ends with its claim, and with the file.
    """
    link = _NO_LINK if claim.share_link_id is None else claim.share_link_id.bytes
    terms = link + int(claim.expires_at.timestamp()).to_bytes(_EXPIRY_BYTES, "big")
    mac = keys.sign(_message(workspace_id, file_id, terms))[:_MAC_BYTES]
    return f"/v1/assets/{file_id}/{base64url.encode(mac + terms)}"


def read_asset_token(keys: KeyRing, workspace_id: Id, file_id: Id, token: str) -> AssetClaim | None:
    """The claim of a token that `download_url` made for this file; None for any other."""
    raw = base64url.decode(token) or b""
    mac, terms = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not keys.verify(_message(workspace_id, file_id, terms), mac, _MAC_BYTES):
        return None
    link = terms[:_LINK_BYTES]
    expires_at = datetime.fromtimestamp(int.from_bytes(terms[_LINK_BYTES:], "big"), UTC)
    return AssetClaim(expires_at, None if link == _NO_LINK else Id(bytes=link))


def _message(workspace_id: Id, file_id: Id, terms: bytes) -> bytes:
    return fingerprint(b"asset token", workspace_id.bytes, file_id.bytes, terms)
