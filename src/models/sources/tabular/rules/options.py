"""Options for reading a file as a table: what a config says, and the limits of decisions C3."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Any

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
    Without a `json_path` rows are at the `usual_path`, where there is a list. With a `query` the
    file is a SQLite database, and the table what the query gives.
    """

    format: TableFormat
    delimiter: str = "auto"
    encoding: str | None = None
    header_row: int | None = None
    sheet_name: str | None = None
    range: str | None = None
    json_path: str | None = None
    usual_path: str | None = None
    charset: str | None = None
    query: str | None = None
    params: Sequence[Any] = ()
    declared: Declared = field(default_factory=Declared)
