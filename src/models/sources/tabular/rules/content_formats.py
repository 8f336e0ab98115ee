"""The format of a file by how its content begins, for one that nothing else tells. Pure."""

from json import detect_encoding

from pydantic_core import from_json

from models.sources.tabular.rules.options import TableFormat

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
