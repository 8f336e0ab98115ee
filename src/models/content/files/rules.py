"""What a file may be called, what it may say it is, and which tokens open its bytes."""

import base64
import binascii
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from models.core.base import Id
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
_EXPIRY_BYTES = 6


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
        """What makes two uploads the same one."""
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
    """What a genuine asset token says; one of a share link ends with the visit it was given in."""

    share_link_id: Id | None = None
    expires_at: datetime | None = None


def download_url(
    keys: KeyRing, workspace_id: Id, file_id: Id, claim: AssetClaim | None = None
) -> str:
    """The path that gives a file's bytes without any other credential (interface, Stored file).

    A member's is the same every time and ends with the file.
    """
    restriction = b""
    if claim is not None and claim.share_link_id is not None and claim.expires_at is not None:
        expiry = int(claim.expires_at.timestamp())
        restriction = claim.share_link_id.bytes + expiry.to_bytes(_EXPIRY_BYTES, "big")
    mac = keys.sign(_message(workspace_id, file_id, restriction))[:_MAC_BYTES]
    token = base64.urlsafe_b64encode(mac + restriction).rstrip(b"=").decode()
    return f"/v1/assets/{file_id}/{token}"


def read_asset_token(keys: KeyRing, workspace_id: Id, file_id: Id, token: str) -> AssetClaim | None:
    """What a token says that `download_url` made for this file; None for any other."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    mac, restriction = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not keys.verify(_message(workspace_id, file_id, restriction), mac, _MAC_BYTES):
        return None
    if not restriction:
        return AssetClaim()
    expiry = int.from_bytes(restriction[_LINK_BYTES:], "big")
    return AssetClaim(Id(bytes=restriction[:_LINK_BYTES]), datetime.fromtimestamp(expiry, UTC))


def _message(workspace_id: Id, file_id: Id, restriction: bytes) -> bytes:
    return fingerprint(b"asset token", workspace_id.bytes, file_id.bytes, restriction)
