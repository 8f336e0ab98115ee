"""XLSX workbooks put together part by part, so that any part can be wrong."""

import io
import zipfile
from collections.abc import Mapping

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/>'
    + "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="application/'
        f'vnd.openxmlformats-officedocument.spreadsheetml.{kind}+xml"/>'
        for part, kind in [
            ("workbook", "sheet.main"),
            ("worksheets/sheet1", "worksheet"),
            ("sharedStrings", "sharedStrings"),
            ("styles", "styles"),
        ]
    )
    + "</Types>",
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1"'
    f' Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{_OFFICE}"><sheets>'
    '<sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    + "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(
            [
                ("worksheet", "worksheets/sheet1.xml"),
                ("sharedStrings", "sharedStrings.xml"),
                ("styles", "styles.xml"),
            ],
            start=1,
        )
    )
    + "</Relationships>",
}
WORKBOOK = _PARTS["xl/workbook.xml"]
"""The part that names the sheets."""
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
STYLES = "xl/styles.xml"


def sheet(*rows: str, before: str = "", head: str = "") -> str:
    """A sheet of rows, each the XML of its cells."""
    numbered = "".join(f'<row r="{n}">{cells}</row>' for n, cells in enumerate(rows, start=1))
    return f"{before}<worksheet {MAIN}>{head}<sheetData>{numbered}</sheetData></worksheet>"


def text(reference: str, value: str) -> str:
    """A cell with its text inline."""
    return f'<c r="{reference}" t="inlineStr"><is><t>{value}</t></is></c>'


def number(reference: str, value: object, style: int = 0) -> str:
    """A cell with a number."""
    return f'<c r="{reference}" s="{style}"><v>{value}</v></c>'


def styles(*codes: str) -> str:
    """Styles 1, 2, … with these number formats."""
    formats = "".join(
        f'<numFmt numFmtId="{170 + n}" formatCode="{code}"/>' for n, code in enumerate(codes)
    )
    cells = "".join(f'<xf numFmtId="{170 + n}"/>' for n in range(len(codes)))
    return (
        f"<styleSheet {MAIN}><numFmts>{formats}</numFmts>"
        f'<cellXfs><xf numFmtId="0"/>{cells}</cellXfs></styleSheet>'
    )


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A workbook of one sheet, S, with these parts."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**_PARTS, **parts}.items():
            archive.writestr(name, content)
    return written.getvalue()


_OPEN = (
    " ".join(
        f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for prefix, name in [
            *((name, name) for name in ("office", "table", "text", "style")),
            ("number", "datastyle"),
            ("draw", "drawing"),
        ]
    )
    + ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
)


def open_document(
    *sheets: str, styles: str = "", before: str = "", manifest: str = "", lead: str = ""
) -> bytes:
    """A workbook of OpenDocument; `before` is written before its sheets, `lead` before all."""
    content = (
        f"{lead}<office:document-content {_OPEN}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:spreadsheet>{before}{''.join(sheets)}"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", f"<manifest>{manifest}</manifest>")
        archive.writestr("styles.xml", f"<office:styles {_OPEN}/>")
        archive.writestr("content.xml", content)
    return written.getvalue()


def open_sheet(*rows: str, name: str = "S", style: str = "", columns: str = "") -> str:
    """A sheet of rows, each the XML of its cells."""
    inside = "".join(f"<table:table-row>{cells}</table:table-row>" for cells in rows)
    styled = f' table:style-name="{style}"' if style else ""
    return f'<table:table table:name="{name}"{styled}>{columns}{inside}</table:table>'


def open_cell(kind: str = "", shown: str = "", **values: object) -> str:
    """A cell of a type; `date_value` is the attribute office:date-value, and so on."""
    stated = {"office:value-type": kind, **values} if kind else values
    attributes = " ".join(
        f'{name if ":" in name else "office:" + name.replace("_", "-")}="{value}"'
        for name, value in stated.items()
    )
    inside = shown if shown.startswith("<") or not shown else f"<text:p>{shown}</text:p>"
    return f"<table:table-cell {attributes}>{inside}</table:table-cell>"


def compound(stream: str) -> bytes:
    """An OLE file (MS-CFB) with one empty stream, as old and as encrypted workbooks are."""
    free, end, sectors_of_table = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

    def numbers(*values: int) -> bytes:
        return b"".join(value.to_bytes(4, "little") for value in values)

    def entry(name: str, kind: int, child: int) -> bytes:
        encoded = name.encode("utf-16-le") + b"\0\0"
        size = len(encoded).to_bytes(2, "little")
        place = numbers(free, free, child) + bytes(36) + numbers(end, 0, 0)
        return encoded.ljust(64, b"\0") + size + bytes([kind, 1]) + place

    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += b"\x3e\0\x03\0\xfe\xff\x09\0\x06\0" + bytes(6)
    header += numbers(0, 1, 1, 0, 4096, end, 0, end, 0, 0) + numbers(*[free] * 108)
    table = numbers(sectors_of_table, end, *[free] * 126)
    directory = entry("Root Entry", 5, 1) + entry(stream, 2, free) + bytes(256)
    return header + table + directory
