"""Opening a file as a table, by its format; a zipped one is checked before it is unpacked."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

from activities.sources.readers.delimited import read_delimited
from activities.sources.readers.json_rows import read_json
from activities.sources.readers.sqlite import read_sqlite
from activities.sources.readers.table import Table, refuse
from activities.sources.readers.workbook import read_workbook
from models.sources.tabular.rules import options as tabular_options
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
    if unzipped > tabular_options.MAX_UNZIPPED_BYTES:
        limit = tabular_options.MAX_UNZIPPED_BYTES // 1024**2
        refuse(f"The workbook unpacks to more than {limit} MiB. Split it.", ErrorKind.TOO_LARGE)
    if unzipped > _SMALL and unzipped / zipped > tabular_options.MAX_ZIP_RATIO:
        refuse(
            f"The workbook unpacks to more than {tabular_options.MAX_ZIP_RATIO} times its size."
            " Save it again in a spreadsheet program, without empty cells.",
            ErrorKind.TOO_LARGE,
        )
    return unzipped


_COMPOUND = b"\xd0\xcf\x11\xe0"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""The stream of an encrypted workbook (MS-OFFCRYPTO 1.3.3)."""
_ZIP = b"PK\x03\x04"


def unpacked_size(path: Path, options: tabular_options.ReadOptions) -> int:
    """The bytes that reading the file comes across. Raises SourceProblem beyond the limits."""
    if options.format in tabular_options.WORKBOOKS:
        begin = _begin(path)
        if begin == _ZIP:
            return check_archive(path)
        if begin == _COMPOUND and _ENCRYPTED in path.read_bytes():
            refuse("The workbook is encrypted. Save it without a password.")
        if begin != _COMPOUND:
            refuse(
                f"The file is not a workbook of the format {options.format}."
                " Choose its format, or save it as a workbook."
            )
    return path.stat().st_size


def open_table(files: Sequence[Path], options: tabular_options.ReadOptions) -> Table:
    """The table in a file, or in the pages of JSON. Raises SourceProblem with what to change."""
    if options.query is not None:
        return read_sqlite(files[0], options)
    if options.format in {tabular_options.TableFormat.JSON, tabular_options.TableFormat.NDJSON}:
        return read_json(files, options)
    if options.format in tabular_options.WORKBOOKS:
        return read_workbook(files[0], options)
    return read_delimited(files[0], options)


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        begin = file.read(len(_ZIP))
    if not begin:
        refuse("The file is empty.")
    return begin
