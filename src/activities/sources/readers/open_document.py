"""Workbooks of OpenDocument (ODS), each cell by the type that it states (OpenDocument 1.3, part 3).

Calamine gives numbers without the percent sign or the currency beside them, leaves out what stands
for line breaks, and no span of time beyond a day. A part with a document type is refused, so that
no entity is ever expanded.
"""

import zipfile
import zlib
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from activities.sources.readers.open_document_cells import OFTEN, Content, OpenBook, damaged
from activities.sources.readers.open_document_styles import (
    Styles,
)
from activities.sources.readers.table import refuse

CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
_PIECE = 256 * 1024
_LONGEST_TAG = 1024 * 1024
"""Bytes of a tag: the parser reads one that arrives in pieces anew with each of them."""


def read_open_document(path: Path, sheet_name: str | None) -> OpenBook:
    """The sheet of this name, else the first that is shown. Raises SourceProblem."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.namelist()
            if _MANIFEST in parts and b"encryption-data" in archive.read(_MANIFEST):
                refuse("The workbook is encrypted. Save it without a password.")
            styles = Styles({})
            if "styles.xml" in parts:
                _parse(archive, "styles.xml", styles)
            content = Content(Styles(styles.meanings), sheet_name)
            _parse(archive, CONTENT, content)
            content.end_row()
    except (ExpatError, ValueError) as error:
        damaged(str(error))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        damaged(str(error)[:200].removesuffix("."))
    return content.book


def _parse(archive: zipfile.ZipFile, part: str, handler: "Styles | Content") -> None:
    """Tell a handler the elements of a part, piece by piece."""
    # Names that are the same object are told apart at once.
    parser = ParserCreate(namespace_separator=" ", intern={name: name for name in OFTEN})
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = lambda *_: damaged("it has a document type")
    handler.listen(parser)
    read = 0
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            parser.Parse(piece, False)
            read += len(piece)
            if read - parser.CurrentByteIndex > _LONGEST_TAG:
                damaged("a tag in it is too long")
    parser.Parse(b"", True)
