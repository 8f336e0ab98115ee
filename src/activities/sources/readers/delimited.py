"""Delimited text: CSV, TSV and their kin (RFC 4180, and what is written in its place)."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from charset_normalizer import from_bytes

from activities.sources.readers.table import (
    Row,
    RowNumbers,
    Table,
    bounded,
    bounded_lines,
    headers_of,
    refuse,
)
from models.sources.tabular.rules.cells import Cell, cell
from models.sources.tabular.rules.options import MAX_CELL_BYTES, ReadOptions, TableFormat
from models.sources.tabular.rules.proposals import HEADER_SEARCH, header_row

_SAMPLE = 64 * 1024
_MARKUP = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
_DELIMITERS = ",;\t|"
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read_delimited(path: Path, options: ReadOptions) -> Table:
    """The table in a file of delimited text. Raises SourceProblem."""
    with path.open("rb") as file:
        sample = file.read(_SAMPLE)
    _check_kind(sample)
    encoding = options.encoding or _encoding(sample, options.charset)
    delimiter = _delimiter(sample, encoding, options)
    csv.field_size_limit(4 * MAX_CELL_BYTES)

    def lines() -> Iterator[list[str]]:
        return _read(path, encoding, delimiter)

    header = options.header_row
    if header is None:
        header = header_row(map(_cells, islice(lines(), HEADER_SEARCH)))
    skipped = max(header, 1) - 1
    first = next(islice(lines(), skipped, None), None)
    if first is None:
        refuse("The file has no row of headers where it is looked for.")
    width = max((len(line) for line in islice(lines(), skipped, skipped + 1_000)), default=0)
    headers = headers_of(_cells(first) if header else None, max(width, len(first)))
    numbers = RowNumbers()

    def rows() -> Iterator[Row]:
        numbers.restart()
        for number, line in enumerate(islice(lines(), header, None), start=header + 1):
            if line:
                numbers.note(number)
                yield _as_wide(line, len(headers))

    return Table(
        headers,
        lambda: bounded(rows()),
        header_row=header,
        delimiter=delimiter,
        encoding=encoding,
        numbers=numbers,
    )


def _cells(line: list[str]) -> Row:
    return [cell(value) for value in line]


def _check_kind(sample: bytes) -> None:
    """Refuse what is no delimited text."""
    if not sample.strip():
        refuse("The file is empty.")
    if _MARKUP.match(sample):
        refuse("The file is HTML, not delimited text. Check its address, and who may read it.")
    if sample.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        refuse("The file is a workbook, not delimited text. Name the format xlsx, xls or ods.")


def _read(path: Path, encoding: str, delimiter: str) -> Iterator[list[str]]:
    read = 0
    try:
        with path.open(encoding=encoding, newline="") as text:
            reader = csv.reader(bounded_lines(text), delimiter=delimiter)
            for line in reader:
                read = reader.line_num
                yield line
    except (UnicodeError, LookupError):
        refuse(f"The file is not written in {encoding}. Name its encoding.")
    except csv.Error as error:
        refuse(
            f"A cell after line {read} is too long, or its quotation mark is not closed: {error}."
        )


def _as_wide(line: list[str], width: int) -> Row:
    """The cells of a line: missing ones are empty, and none may stand beyond the headers."""
    if len(line) > width:
        if any(value.strip() for value in line[width:]):
            refuse(f"A row has more than {width} cells: {', '.join(line)[:80]}…")
        line = line[:width]
    cells: list[Cell] = [value if value and not value.isspace() else None for value in line]
    return cells + [None] * (width - len(cells)) if len(cells) < width else cells


def _encoding(sample: bytes, declared: str | None) -> str:
    """The encoding of the text: by its mark, else UTF-8 if it is that, else as it is declared.

    Without a declaration that Python knows it is the most likely one.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return name
    try:
        # The sample may end within a character.
        sample[: sample.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4:
            if declared is not None and _is_known(declared):
                return declared
            found = from_bytes(sample).best()
            return "cp1252" if found is None else found.encoding
    return "utf-8"


def _is_known(encoding: str) -> bool:
    try:
        "".encode(encoding)
    except LookupError:
        return False
    return True


def _delimiter(sample: bytes, encoding: str, options: ReadOptions) -> str:
    """The delimiter that divides most lines into equally many cells."""
    if options.format is TableFormat.TSV:
        return "\t"
    if options.delimiter != "auto":
        return options.delimiter
    try:
        text = sample.decode(encoding, errors="ignore")
    except LookupError:
        refuse(f"There is no encoding named {encoding}.")
    lines = text.splitlines()[:100]
    lines = lines[:-1] if len(lines) > 1 and len(sample) == _SAMPLE else lines

    def score(delimiter: str) -> tuple[int, int]:
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error:
            return 0, 0
        width, times = max(widths.items(), key=lambda one: (one[1], one[0]), default=(0, 0))
        return (times, width) if width > 1 else (0, 0)

    return max(_DELIMITERS, key=score)
