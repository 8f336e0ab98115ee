"""Reading zip archives of which nothing is believed."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from models.workspace.bundles.archives.entries import PIECE, Allowance, Entry
from models.workspace.bundles.errors import BundleError, Fault
from models.workspace.bundles.rules import MAX_DIRECTORY, MAX_FILES, check_name

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
    """The files of a zip archive of so many bytes. Raises `BundleError`."""
    _check_directory(file, size)
    allowance = Allowance(size)
    with _readable(), zipfile.ZipFile(file) as archive:
        listed = archive.infolist()
        if len(listed) > MAX_FILES:
            raise BundleError(Fault.TOO_LARGE, f"The bundle has more than {MAX_FILES} files.")
        known: set[str] = set()
        for info in listed:
            _check_entry(info, known)
            allowance.take(info.file_size)
        for info in listed:
            if not info.is_dir():
                yield Entry(info.filename, _pieces(archive, info))


def _check_entry(info: zipfile.ZipInfo, known: set[str]) -> None:
    # The name as it is written: `filename` ends where a NUL stands.
    check_name(info.orig_filename.removesuffix("/"), known)
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise BundleError(Fault.NOT_A_FILE, f"{info.filename} in the bundle is a link or a device.")
    if info.flag_bits & _ENCRYPTED:
        raise BundleError(Fault.ENCRYPTED, f"{info.filename} in the bundle is encrypted.")
    if info.compress_type not in _METHODS:
        raise BundleError(
            Fault.NOT_AN_ARCHIVE, f"{info.filename} in the bundle is packed in an unknown way."
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
        raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no whole zip archive.")
    (length,) = struct.unpack_from("<L", tail, place + 12)
    # Where there is a locator, the reader believes what it leads to, whatever the end says.
    if length == _IN_64 or _has_locator(file, start + place):
        length = max(_length_64(file, start + place), length if length != _IN_64 else 0)
    file.seek(0)
    if length > MAX_DIRECTORY:
        raise BundleError(Fault.TOO_LARGE, "The bundle has too many files.")


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
    raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is no whole zip archive.")


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
        raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle cannot be unpacked.") from error
