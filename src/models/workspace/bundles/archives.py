"""Reading archives of which nothing is believed, zip or tar with Zstandard, and writing zip."""

import asyncio
import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import zstandard

from models.workspace.bundles import rules

PIECE = 1024 * 1024
"""Bytes read at once."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive; its pieces must be read before the next entry."""

    name: str
    pieces: Iterator[bytes]


class Allowance:
    """The bytes that may still come out of an archive of a size."""

    def __init__(self, packed: int) -> None:
        self._left = min(rules.MAX_UNPACKED, max(rules.FREE_BYTES, packed * rules.MAX_RATIO))

    def take(self, size: int) -> None:
        """Raises `BundleError` when an archive unpacks to far more than it is."""
        self._left -= size
        if self._left < 0:
            raise rules.BundleError(rules.Fault.BOMB, "The unpacked bundle is too large.")


_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_ZIP = b"PK"


def archive_entries(file: IO[bytes], size: int) -> Iterator[Entry]:
    """The files of a bundle of this size, whose format is known by its first bytes.

    Each has a name that `rules.check_name` took; none is written by name. Raises `BundleError`.
    """
    file.seek(0)
    begin = file.read(4)
    file.seek(0)
    if begin == _ZSTANDARD:
        return tar_entries(file, size)
    if begin[:2] == _ZIP:
        return zip_entries(file, size)
    raise rules.BundleError(
        rules.Fault.NOT_AN_ARCHIVE, "The bundle must be a zip or tar.zst archive."
    )


_END = b"PK\x05\x06"
_END_SIZE = 22
_LONGEST_COMMENT = 65_535
_END_64 = b"PK\x06\x06"
_LOCATOR_64 = b"PK\x06\x07"
_LOCATOR_SIZE = 20
_IN_64 = 0xFFFFFFFF
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1


def zip_entries(file: IO[bytes], size: int) -> Iterator[Entry]:
    """The files of a zip archive of this size. Raises `BundleError`."""
    _check_directory(file, size)
    allowance = Allowance(size)
    with _readable(), zipfile.ZipFile(file) as archive:
        listed = archive.infolist()
        if len(listed) > rules.MAX_FILES:
            raise rules.BundleError(
                rules.Fault.TOO_LARGE, f"The bundle has more than {rules.MAX_FILES} files."
            )
        known: set[str] = set()
        for info in listed:
            _check_entry(info, known)
            allowance.take(info.file_size)
        for info in listed:
            if not info.is_dir():
                yield Entry(info.filename, _pieces(archive, info))


def _check_entry(info: zipfile.ZipInfo, known: set[str]) -> None:
    # The name as it is written: `filename` ends where a NUL stands.
    rules.check_name(info.orig_filename.removesuffix("/"), known)
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise rules.BundleError(
            rules.Fault.NOT_A_FILE, f"{info.filename} in the bundle is a link or a device."
        )
    if info.flag_bits & _ENCRYPTED:
        raise rules.BundleError(
            rules.Fault.ENCRYPTED, f"{info.filename} in the bundle is encrypted."
        )
    if info.compress_type not in _METHODS:
        raise rules.BundleError(
            rules.Fault.NOT_AN_ARCHIVE,
            f"{info.filename} in the bundle uses an unknown compression.",
        )


def _pieces(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with _readable(), archive.open(info) as member:
        while piece := member.read(PIECE):
            yield piece


def _check_directory(file: IO[bytes], size: int) -> None:
    """Refuse a list of files that is too long before it is read into memory."""
    file.seek(max(0, size - _END_SIZE - _LONGEST_COMMENT))
    start = file.tell()
    tail = file.read(_END_SIZE + _LONGEST_COMMENT)
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < _END_SIZE:
        raise rules.BundleError(
            rules.Fault.NOT_AN_ARCHIVE, "The zip archive is incomplete or damaged."
        )
    (length,) = struct.unpack_from("<L", tail, place + 12)
    # Where there is a locator, the reader uses the record it leads to, and ignores the end.
    if length == _IN_64 or _has_locator(file, start + place):
        length = max(_length_64(file, start + place), length if length != _IN_64 else 0)
    file.seek(0)
    if length > rules.MAX_DIRECTORY:
        raise rules.BundleError(rules.Fault.TOO_LARGE, "The bundle has too many files.")


def _has_locator(file: IO[bytes], end: int) -> bool:
    file.seek(max(0, end - _LOCATOR_SIZE))
    return file.read(4) == _LOCATOR_64


def _length_64(file: IO[bytes], end: int) -> int:
    file.seek(max(0, end - _LOCATOR_SIZE))
    locator = file.read(_LOCATOR_SIZE)
    if locator[:4] == _LOCATOR_64:
        (place,) = struct.unpack_from("<Q", locator, 8)
        file.seek(min(place, end))
        record = file.read(56)
        if record[:4] == _END_64 and len(record) == 56:
            (length,) = struct.unpack_from("<Q", record, 40)
            return int(length)
    raise rules.BundleError(rules.Fault.NOT_AN_ARCHIVE, "The zip archive is incomplete or damaged.")


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        struct.error,
        OverflowError,
        OSError,
    ) as error:
        raise rules.BundleError(
            rules.Fault.NOT_AN_ARCHIVE, "The bundle cannot be unpacked."
        ) from error


BLOCK = 512
_WINDOW = 1 << 27
"""Bytes that unpacking may look back on: what `zstd` itself takes without being told more."""
_LONGEST_HEADER = 64 * 1024
_FILE, _DIRECTORY, _LONG_NAME, _EXTENDED = {b"0", b"\0"}, b"5", b"L", b"x"


def tar_entries(file: IO[bytes], size: int) -> Iterator[Entry]:
    """The files of a `tar.zst` archive of this size. Raises `BundleError`.

    Only what a bundle needs is understood: regular files, directories, and the long names of POSIX
    and GNU. A link, a device or a sparse file is refused.
    """
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    reader = _Reader(unpacker.stream_reader(file, read_across_frames=True), Allowance(size))
    known: set[str] = set()
    while (header := reader.header()) is not None:
        name, length, is_file = header
        rules.check_name(name, known)
        if len(known) > rules.MAX_FILES:
            raise rules.BundleError(
                rules.Fault.TOO_LARGE, f"The bundle has more than {rules.MAX_FILES} files."
            )
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
                raise rules.BundleError(
                    rules.Fault.NOT_A_FILE, "The bundle has a link or a device."
                )
            return self._entry(block, name, size if length is None else length, kind)

    def _entry(
        self, block: bytes, name: str | None, size: int, kind: bytes
    ) -> tuple[str, int, bool]:
        path = _name(block) if name is None else name
        if kind == _DIRECTORY:
            if size:
                raise rules.BundleError(
                    rules.Fault.NOT_A_FILE, "The bundle has a directory with content."
                )
            return path.removesuffix("/"), 0, False
        return path, size, True

    def pieces(self, size: int) -> Iterator[bytes]:
        self._left, self._padding = size, -size % BLOCK
        while self._left:
            piece = self._read(min(PIECE, self._left))
            if not piece:
                raise rules.BundleError(
                    rules.Fault.NOT_AN_ARCHIVE, "The bundle ends in the middle of a file."
                )
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
                raise rules.BundleError(
                    rules.Fault.NOT_AN_ARCHIVE, "The bundle has data after its end."
                )

    def _small(self, size: int) -> bytes:
        if size > _LONGEST_HEADER:
            raise rules.BundleError(
                rules.Fault.UNSAFE_NAME, "The bundle has a file name that is too long."
            )
        return self._exactly(size + -size % BLOCK)[:size]

    def _exactly(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            piece = self._read(size - len(content))
            if not piece:
                raise rules.BundleError(
                    rules.Fault.NOT_AN_ARCHIVE, "The tar archive is incomplete or damaged."
                )
            content += piece
        return content

    def _read(self, size: int) -> bytes:
        try:
            piece = self._stream.read(size)
        except (zstandard.ZstdError, OSError, ValueError) as error:
            raise rules.BundleError(
                rules.Fault.NOT_AN_ARCHIVE, "The bundle cannot be unpacked."
            ) from error
        self._allowance.take(len(piece))
        return piece


def _check_sum(block: bytes) -> None:
    """The sum of a header's bytes, its own eight counted as spaces (POSIX, ustar)."""
    if sum(block) - sum(block[148:156]) + 8 * 0x20 != _number(block[148:156]):
        raise rules.BundleError(
            rules.Fault.NOT_AN_ARCHIVE, "The bundle is not a valid tar archive."
        )


def _number(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits.isdigit() or digits.strip(b"01234567"):
        if digits == b"":
            return 0
        raise rules.BundleError(
            rules.Fault.NOT_AN_ARCHIVE, "The bundle is not a valid tar archive."
        )
    return int(digits, 8)


def _name(block: bytes) -> str:
    name, prefix = block[:100].rstrip(b"\0"), block[345:500].rstrip(b"\0")
    in_ustar = block[257:263] == b"ustar\0"
    return _text(prefix + b"/" + name if in_ustar and prefix else name)


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise rules.BundleError(
            rules.Fault.UNSAFE_NAME, "The bundle has an invalid file name."
        ) from None


def _extended(header: bytes, name: str | None, length: int | None) -> tuple[str | None, int | None]:
    """Name and length from a POSIX extended header: lines of `<length> <key>=<value>`."""
    while header:
        count, _, _ = header.partition(b" ")
        if not count.isdigit() or not 5 <= int(count) <= len(header):
            raise rules.BundleError(
                rules.Fault.NOT_AN_ARCHIVE, "The bundle is not a valid tar archive."
            )
        line, header = header[len(count) + 1 : int(count) - 1], header[int(count) :]
        key, _, value = line.partition(b"=")
        if key == b"path":
            name = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > 15:
                raise rules.BundleError(
                    rules.Fault.NOT_AN_ARCHIVE, "The bundle is not a valid tar archive."
                )
            length = int(value)
        elif key.startswith((b"GNU.sparse", b"linkpath")):
            raise rules.BundleError(
                rules.Fault.NOT_A_FILE, "The bundle has a link or a sparse file."
            )
    return name, length


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
        self._archive = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]  # it only writes
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
