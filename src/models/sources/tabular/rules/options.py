"""Options and limits of reading a file as a table, and the reasons why it fails. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from json import detect_encoding
from pathlib import PurePath
from typing import Any

from pydantic_core import from_json

from models.core.base import JsonObject
from models.sources.tabular.rules.formats import Declared

MAX_FILE_BYTES = 50 * 1024 * 1024
"""Bytes of an imported spreadsheet."""
MAX_SHEETS = 100
"""Sheets of a workbook that are imported when the whole of it is."""
MAX_ROWS = 1_000_000
MAX_COLUMNS = 200
MAX_CELL_BYTES = 32 * 1024
MAX_UNZIPPED_BYTES = 512 * 1024 * 1024
MAX_ZIP_RATIO = 100


class TableFormat(StrEnum):
    CSV = "csv"
    TSV = "tsv"
    XLSX = "xlsx"
    XLS = "xls"
    ODS = "ods"
    JSON = "json"
    NDJSON = "ndjson"


WORKBOOKS = frozenset({TableFormat.XLSX, TableFormat.XLS, TableFormat.ODS})

_EXTENSIONS = {
    ".csv": TableFormat.CSV,
    ".txt": TableFormat.CSV,
    ".tsv": TableFormat.TSV,
    ".tab": TableFormat.TSV,
    ".xlsx": TableFormat.XLSX,
    ".xlsm": TableFormat.XLSX,
    ".xls": TableFormat.XLS,
    ".ods": TableFormat.ODS,
    ".json": TableFormat.JSON,
    ".geojson": TableFormat.JSON,
    ".ndjson": TableFormat.NDJSON,
    ".jsonl": TableFormat.NDJSON,
}
_MEDIA_TYPES = {
    "text/csv": TableFormat.CSV,
    "text/tab-separated-values": TableFormat.TSV,
    "application/json": TableFormat.JSON,
    "application/geo+json": TableFormat.JSON,
    "application/x-ndjson": TableFormat.NDJSON,
    "application/vnd.ms-excel": TableFormat.XLS,
    "application/vnd.oasis.opendocument.spreadsheet": TableFormat.ODS,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": TableFormat.XLSX,
}


def format_named(name: str, media_type: str = "") -> TableFormat | None:
    """The format that a file name, else a media type, tells; None when neither does."""
    by_name = _EXTENSIONS.get(PurePath(name).suffix.lower())
    return by_name or _MEDIA_TYPES.get(media_type.partition(";")[0].strip().lower())


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a file. `header_row` counts from 1; 0 says that there is none.

    Without a `header_row` the file is looked through for one.
    `charset` is what its server says it is written in, which counts where its bytes do not tell.
    Without a `json_path` rows are at the `usual_path`, where there is a list. With a `page_size` a
    page of fewer rows may be one of which rows were left out, and the next one may begin with some
    of it. With a `query` the file is a SQLite database, and the table what the query gives.
    """

    format: TableFormat
    delimiter: str = "auto"
    encoding: str | None = None
    header_row: int | None = None
    sheet_name: str | None = None
    range: str | None = None
    json_path: str | None = None
    usual_path: str | None = None
    page_size: int | None = None
    charset: str | None = None
    query: str | None = None
    params: Sequence[Any] = ()
    declared: Declared = field(default_factory=Declared)


def read_options(
    config: JsonObject, file_format: TableFormat, charset: str | None = None
) -> ReadOptions:
    """The options for reading a file of this format; the config has passed its model."""
    return ReadOptions(
        format=file_format,
        delimiter=config.get("delimiter", "auto"),
        encoding=config.get("encoding"),
        header_row=config.get("headerRow"),
        sheet_name=config.get("sheetName"),
        range=config.get("range"),
        json_path=config.get("jsonPath"),
        page_size=_page_size(config),
        charset=charset,
        declared=Declared(config.get("dateOrder"), config.get("decimalSeparator"), _words(config)),
    )


def _page_size(config: JsonObject) -> int | None:
    """The rows of a page that is asked for by an offset, which moves by the rows that came."""
    pagination = config.get("pagination") or {}
    return pagination.get("pageSize") if pagination.get("type") == "offset" else None


def _words(config: JsonObject) -> tuple[frozenset[str], frozenset[str]] | None:
    words = config.get("booleanWords")
    if words is None:
        return None
    yes, no = (frozenset(map(str.casefold, words[name])) for name in ("true", "false"))
    return yes, no


BEGINNING = 64 * 1024
"""Bytes that are looked at."""

_ZIP = b"PK\x03\x04"
_COMPOUND = b"\xd0\xcf\x11\xe0"
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
"""The name and the content of the first entry of such a workbook (OpenDocument, part 2, 3.3)."""
_ENTRY = 30
"""The offset of the name of an archive's first entry, in bytes."""


def format_of_content(begin: bytes) -> TableFormat:
    """The format of a file that begins so: delimited text where nothing says otherwise."""
    if begin.startswith(_ZIP):
        is_open = begin[_ENTRY:].startswith(_OPEN_DOCUMENT)
        return TableFormat.ODS if is_open else TableFormat.XLSX
    if begin.startswith(_COMPOUND):
        return TableFormat.XLS
    text = begin.decode(detect_encoding(begin), "ignore").lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        return TableFormat.JSON
    if text.startswith("{"):
        return TableFormat.NDJSON if _is_object_by_line(text) else TableFormat.JSON
    return TableFormat.CSV


def _is_object_by_line(text: str) -> bool:
    first, _, rest = text.partition("\n")
    if not rest.lstrip().startswith("{"):
        return False
    try:
        from_json(first)
    except ValueError:
        return False
    return True


class ErrorKind(StrEnum):
    FETCH = "fetch"
    AUTH = "auth"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    PARSE = "parse"
    MAPPING = "mapping"
    WRITE = "write"
    GUARD = "guard"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


RETRIED = frozenset({ErrorKind.FETCH, ErrorKind.TIMEOUT})
"""Kinds of problems that another attempt may not meet."""


class SourceProblem(Exception):  # noqa: N818  # an outcome that people read, not a fault of code
    """A source that cannot be used as it is; `message` says what to change and holds no secret.

    A `final` one is met by every other attempt, too. `retry_after` are the seconds that the source
    asks to be left alone.
    """

    retryable: bool = False

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        final: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = kind in RETRIED and not final
        self.retry_after = retry_after
