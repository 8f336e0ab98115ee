"""Reading tar archives packed with Zstandard, of which nothing is believed.

Only what a bundle needs is understood: regular files, directories, and the long names of POSIX and
GNU. A link, a device or a sparse file is refused.
"""

from collections.abc import Iterator
from typing import IO

import zstandard

from models.workspace.bundles.archives.entries import PIECE, Allowance, Entry
from models.workspace.bundles.errors import BundleError, Fault
from models.workspace.bundles.rules import MAX_FILES, check_name

BLOCK = 512
_WINDOW = 1 << 27
"""Bytes that unpacking may look back on: what `zstd` itself takes without being told more."""
_LONGEST_HEADER = 64 * 1024
_FILE, _DIRECTORY, _LONG_NAME, _EXTENDED = {b"0", b"\0"}, b"5", b"L", b"x"


def tar_entries(file: IO[bytes], size: int) -> Iterator[Entry]:
    """The files of a `tar.zst` archive of so many bytes. Raises `BundleError`."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    reader = _Reader(unpacker.stream_reader(file, read_across_frames=True), Allowance(size))
    known: set[str] = set()
    while (header := reader.header()) is not None:
        name, length, is_file = header
        check_name(name, known)
        if len(known) > MAX_FILES:
            raise BundleError(Fault.TOO_LARGE, f"The bundle has more than {MAX_FILES} files.")
        if is_file:
            yield Entry(name, reader.pieces(length))
            reader.finish()
    reader.drain()


class _Reader:
    """Headers and contents of a stream, in order."""

    def __init__(self, stream: IO[bytes], allowance: Allowance) -> None:
        self._stream, self._allowance = stream, allowance
        self._left = 0
        self._padding = 0

    def header(self) -> tuple[str, int, bool] | None:
        """Name, length and whether it is a file, of the next entry; None at the end."""
        name, length = None, None
        while True:
            block = self._exactly(BLOCK)
            if block == bytes(BLOCK):
                return None
            _check_sum(block)
            kind, size = block[156:157], _number(block[124:136])
            if kind in {_LONG_NAME, _EXTENDED}:
                extension = self._small(size)
                if kind == _LONG_NAME:
                    name = _text(extension.rstrip(b"\0"))
                else:
                    name, length = _extended(extension, name, length)
                continue
            if kind not in _FILE and kind != _DIRECTORY:
                raise BundleError(Fault.NOT_A_FILE, "The bundle has a link or a device.")
            return self._entry(block, name, size if length is None else length, kind)

    def _entry(
        self, block: bytes, name: str | None, size: int, kind: bytes
    ) -> tuple[str, int, bool]:
        found = _name(block) if name is None else name
        if kind == _DIRECTORY:
            if size:
                raise BundleError(Fault.NOT_A_FILE, "The bundle has a directory with bytes.")
            return found.removesuffix("/"), 0, False
        return found, size, True

    def pieces(self, size: int) -> Iterator[bytes]:
        self._left, self._padding = size, -size % BLOCK
        while self._left:
            piece = self._read(min(PIECE, self._left))
            if not piece:
                raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle ends in the middle of a file.")
            self._left -= len(piece)
            yield piece

    def finish(self) -> None:
        """Pass over what was not read of an entry."""
        while self._left:
            self._left -= len(self._exactly(min(PIECE, self._left)))
        self._exactly(self._padding)
        self._padding = 0

    def drain(self) -> None:
        """Read what stands behind the end, which may only be zeros."""
        while piece := self._read(PIECE):
            if piece.strip(b"\0"):
                raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle goes on behind its end.")

    def _small(self, size: int) -> bytes:
        if size > _LONGEST_HEADER:
            raise BundleError(Fault.UNSAFE_NAME, "The bundle has a name that is far too long.")
        return self._exactly(size + -size % BLOCK)[:size]

    def _exactly(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            piece = self._read(size - len(content))
            if not piece:
                raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no whole tar archive.")
            content += piece
        return content

    def _read(self, size: int) -> bytes:
        try:
            piece = self._stream.read(size)
        except (zstandard.ZstdError, OSError, ValueError) as error:
            raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle cannot be unpacked.") from error
        self._allowance.take(len(piece))
        return piece


def _check_sum(block: bytes) -> None:
    """The sum of a header's bytes, its own eight counted as spaces (POSIX, ustar)."""
    if sum(block) - sum(block[148:156]) + 8 * 0x20 != _number(block[148:156]):
        raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no tar archive.")


def _number(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits.isdigit() or digits.strip(b"01234567"):
        if digits == b"":
            return 0
        raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no tar archive.")
    return int(digits, 8)


def _name(block: bytes) -> str:
    name, prefix = block[:100].rstrip(b"\0"), block[345:500].rstrip(b"\0")
    in_ustar = block[257:263] == b"ustar\0"
    return _text(prefix + b"/" + name if in_ustar and prefix else name)


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BundleError(Fault.UNSAFE_NAME, "The bundle has a name that is no text.") from None


def _extended(header: bytes, name: str | None, length: int | None) -> tuple[str | None, int | None]:
    """Name and length from a POSIX extended header: lines of `<length> <key>=<value>`."""
    while header:
        count, _, _ = header.partition(b" ")
        if not count.isdigit() or not 5 <= int(count) <= len(header):
            raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no tar archive.")
        line, header = header[len(count) + 1 : int(count) - 1], header[int(count) :]
        key, _, value = line.partition(b"=")
        if key == b"path":
            name = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > 15:
                raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no tar archive.")
            length = int(value)
        elif key.startswith((b"GNU.sparse", b"linkpath")):
            raise BundleError(Fault.NOT_A_FILE, "The bundle has a link or a sparse file.")
    return name, length
