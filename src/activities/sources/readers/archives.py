"""Checks of a zipped workbook before anything of it is unpacked."""

import zipfile
from pathlib import Path

from activities.sources.readers.table import refuse
from models.sources.tabular.rules.options import MAX_UNZIPPED_BYTES, MAX_ZIP_RATIO
from models.sources.tabular.rules.problems import ErrorKind

_MAX_ENTRIES = 10_000
_SMALL = 1024 * 1024
"""Unpacked bytes below which the ratio says nothing: a small sheet packs well."""


def check_archive(path: Path) -> int:
    """The bytes that an archive unpacks to. Raises SourceProblem for one that unpacks to too much.

    What an entry really holds cannot pass what it declares: readers stop there.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        refuse("The workbook is damaged or incomplete. Save it again in a spreadsheet program.")
    if len(entries) > _MAX_ENTRIES:
        refuse(f"The workbook has more than {_MAX_ENTRIES:,} parts.", ErrorKind.TOO_LARGE)
    if any(entry.flag_bits & 1 for entry in entries):
        refuse("The workbook is encrypted. Save it without a password.")
    unzipped = sum(entry.file_size for entry in entries)
    zipped = max(path.stat().st_size, 1)
    if unzipped > MAX_UNZIPPED_BYTES:
        refuse(
            f"The workbook unpacks to more than {MAX_UNZIPPED_BYTES // 1024**2} MiB. Split it.",
            ErrorKind.TOO_LARGE,
        )
    if unzipped > _SMALL and unzipped / zipped > MAX_ZIP_RATIO:
        refuse(
            f"The workbook unpacks to more than {MAX_ZIP_RATIO} times its size."
            " Save it again in a spreadsheet program, without what is empty.",
            ErrorKind.TOO_LARGE,
        )
    return unzipped
