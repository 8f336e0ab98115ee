"""Answers made once: the same bytes for everybody, compressed and with an entity tag."""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

from api.kernel.entity_tags import is_current
from api.kernel.request import ApiRequest

_REFUSED = re.compile(r"gzip\s*;\s*q=0(\.0*)?\s*$")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The bytes of an answer; a client asks with its entity tag whether they are still the same."""

    content: bytes
    compressed: bytes
    etag: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, content: bytes, media_type: str, headers: Mapping[str, str]) -> "Prepared":
        """Compress the content and compute its entity tag."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        fixed = {
            "Cache-Control": "no-cache",
            **headers,
            "Content-Type": media_type,
            "Vary": "Accept-Encoding",
        }
        return cls(content, gzip.compress(content, 6, mtime=0), digest, fixed)

    def answer(self, request: ApiRequest) -> Response:
        """The answer in the coding the client takes, or 304 when it has it already.

        The two codings differ in bytes, and so in their tags (RFC 9110, 8.8.3.3).
        """
        zipped = _takes_gzip(request)
        etag = f'"{self.etag}-gzip"' if zipped else f'"{self.etag}"'
        headers = {**self.headers, "ETag": etag}
        if is_current(request, etag):
            return Response(status_code=304, headers=headers)
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return Response(self.compressed if zipped else self.content, headers=headers)


def _takes_gzip(request: ApiRequest) -> bool:
    codings = b",".join(request.headers_named(b"accept-encoding")).decode("latin-1").lower()
    named = [one.strip() for one in codings.split(",") if one.strip().startswith("gzip")]
    return any(not _REFUSED.fullmatch(one) for one in named)
