"""The files of a bundle, whichever of the two archives it is."""

from collections.abc import Iterator
from typing import IO

from models.workspace.bundles.archives.entries import Entry
from models.workspace.bundles.archives.tars import tar_entries
from models.workspace.bundles.archives.zips import zip_entries
from models.workspace.bundles.errors import BundleError, Fault

_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_ZIP = b"PK"


def entries(file: IO[bytes], size: int) -> Iterator[Entry]:
    """The files of a bundle of so many bytes, which is known by how it begins.

    Each has a name that `rules.check_name` took; none is written by name. Raises `BundleError`.
    """
    file.seek(0)
    begin = file.read(4)
    file.seek(0)
    if begin == _ZSTANDARD:
        return tar_entries(file, size)
    if begin[:2] == _ZIP:
        return zip_entries(file, size)
    raise BundleError(Fault.NOT_AN_ARCHIVE, "The bundle is neither a zip nor a tar.zst archive.")
