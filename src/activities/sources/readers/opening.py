"""Opening a file as a table, by its format; a zipped one is checked before it is unpacked.

An SQLite file, which is untrusted, is opened to be read only. Its query may select, and nothing
else: no file is attached, no extension loaded, no setting changed. It is interrupted when it takes
too long.
"""

import re
import sqlite3
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

from activities.sources.readers.delimited import read_delimited
from activities.sources.readers.json_rows import read_json
from activities.sources.readers.table import Row, Table, bounded, headers_of, refuse
from activities.sources.readers.workbook import read_workbook
from models.sources.tabular.rules import options as tabular_options
from models.sources.tabular.rules.cells import Cell, cell
from models.sources.tabular.rules.options import ErrorKind, ReadOptions

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
_LONGEST = 16
_COMPRESSED = re.compile(
    rb"\x1f\x8b\x08|BZh[1-9]1AY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!\x1a"
)
"""The beginning of a file of gzip, bzip2, xz, zstd, 7-Zip or RAR."""
_NO_TEXT = re.compile(
    rb"%PDF-|\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|SQLite format 3\x00|PAR1[\x00-\x1f]|\{\\rtf|\x7fELF"
)
"""The beginning of a document, picture or database, whose bytes could be read as text."""
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
    if options.format in tabular_options.WORKBOOKS:
        return read_workbook(files[0], options)
    _check_is_text(files[0])
    if options.format in {tabular_options.TableFormat.JSON, tabular_options.TableFormat.NDJSON}:
        return read_json(files, options)
    return read_delimited(files[0], options)


def _check_is_text(path: Path) -> None:
    """Refuse content that is compressed, or no text at all."""
    with path.open("rb") as file:
        begin = file.read(_LONGEST)
    if _COMPRESSED.match(begin):
        refuse("The file is compressed. Unpack it first, or send it with Content-Encoding: gzip.")
    if _NO_TEXT.match(begin):
        refuse("The file is not text. Check its URL, or choose its format.")


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        begin = file.read(len(_ZIP))
    if not begin:
        refuse("The file is empty.")
    return begin


SECONDS = 60.0
"""Of one run of a query."""
_STEPS = 10_000
"""Instructions of SQLite between two checks of the time."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LENGTH: 16 * 1024 * 1024,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_REFUSED_FUNCTIONS = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN})


def read_sqlite(path: Path, options: ReadOptions) -> Table:
    """The table that a query of the file gives. Raises SourceProblem."""
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\x00":
            refuse("The file is not a SQLite database, or is encrypted.")

    with _selected(path, options) as cursor:
        named = [column[0] for column in cursor.description or ()]
    headers = headers_of(named, len(named))

    def rows() -> Iterator[Row]:
        with _selected(path, options) as cursor:
            for row in cursor:
                yield [_cell(value) for value in row]

    return Table(headers, lambda: bounded(rows()))


def _cell(value: object) -> Cell:
    return cell(value.hex() if isinstance(value, bytes) else value)


@contextmanager
def _selected(path: Path, options: ReadOptions) -> Iterator[sqlite3.Cursor]:
    """The executed query. Errors in the block become problems, too."""
    try:
        # Immutable: nothing beside the file is looked for, be it a journal or a lock.
        where = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(where, uri=True)) as connection:
            _confine(connection)
            yield connection.execute(options.query or "", options.params)
    except (sqlite3.Error, sqlite3.Warning) as error:
        _refuse(error)


def _confine(connection: sqlite3.Connection) -> None:
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.text_factory = lambda content: content.decode(errors="replace")
    deadline = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    connection.set_authorizer(_authorize)


def _authorize(action: int, _first: object, second: object, *_where: object) -> int:
    function = action == sqlite3.SQLITE_FUNCTION and str(second).lower()
    if action not in _ALLOWED or function in _REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _refuse(error: Exception) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        refuse(
            f"The query took more than {SECONDS:.0f} seconds. Read less data.", ErrorKind.TIMEOUT
        )
    if code == sqlite3.SQLITE_AUTH:
        refuse("The query can only read tables of the file.", ErrorKind.MAPPING)
    if code == sqlite3.SQLITE_TOOBIG:
        refuse("A value in the result is too large. Read less data.", ErrorKind.TOO_LARGE)
    if code in _DAMAGED:
        refuse("The file is damaged or encrypted.")
    refuse(f"SQLite rejected the query: {' '.join(str(error).split())[:300]}", ErrorKind.MAPPING)
