"""Writing a zip archive piece by piece, without a file and without memory for one."""

import asyncio
import hashlib
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass

_SINCE = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip archive can say; a bundle says none."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A file of an archive, once it is written."""

    sha256: str
    bytes: int


class ZipWriter:
    """Gives the bytes of an archive as its files come."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._archive = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]
        self.written: dict[str, Digest] = {}
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> bytes:
        """The SHA-256 of what `digested` has given so far."""
        return self._digest.digest()

    async def digested(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The pieces of the archive; empty ones are left out."""
        async for piece in pieces:
            if piece:
                self._digest.update(piece)
                yield piece

    async def add(
        self, name: str, pieces: AsyncIterator[bytes], *, packed: bool = True
    ) -> AsyncIterator[bytes]:
        """Write one file; afterwards it is in `written`."""
        info = zipfile.ZipInfo(name, _SINCE)
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        digest, size = hashlib.sha256(), 0
        with self._archive.open(info, "w", force_zip64=True) as member:
            async for piece in pieces:
                digest.update(piece)
                size += len(piece)
                await asyncio.to_thread(member.write, piece)
                yield self._sink.take()
        yield self._sink.take()
        self.written[name] = Digest(digest.hexdigest(), size)

    def close(self) -> bytes:
        """The end of the archive: the list of its files."""
        self._archive.close()
        return self._sink.take()


class _Sink:
    """A file that cannot be sought in, and is emptied as it is written."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, piece: bytes) -> int:
        self._written += piece
        return len(piece)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken
