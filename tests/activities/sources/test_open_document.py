"""Cells of ODS workbooks: the same as those of the same sheet as XLSX."""

import os
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.sources.readers.opening import open_table, unpacked_size
from activities.sources.readers.table import Table
from models.data.fields.rules.fields import FieldKind
from models.sources.tabular.rules.cells import Amount, ErrorCell, Percent
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, SourceProblem, TableFormat
from tests.support.workbooks import (
    SHEET,
    STYLES,
    open_cell,
    open_document,
    open_sheet,
    packed,
    sheet,
    styles,
)

K = FieldKind


def digits(least: int, **signs: str) -> str:
    """A number of a format: the sign `p4` has four digits behind it."""
    inside = "".join(
        f'<number:embedded-text number:position="{place[1:]}">{sign}</number:embedded-text>\n'
        for place, sign in signs.items()
    )
    return f'<number:number number:min-integer-digits="{least}">{inside}</number:number>\n'


CODES = {
    6: digits(9, p6="-", p4="-"),
    7: "<number:text>+</number:text>\n" + digits(11),
    8: "<number:text>(</number:text>" + digits(10, p4="-", p7=") "),
    9: "<number:text>INV-</number:text>" + digits(4) + "<number:text/>",
    10: digits(4, p2="h"),
    11: digits(4, p2="-") + '<style:map style:condition="value()&lt;9"/>',
    12: "<number:text>INV-</number:text>" + digits(1),
    13: digits(4, p5="-"),
}
SPANS = (
    '<number:time-style style:name="N1" number:truncate-on-overflow="false"/>'
    '<number:time-style style:name="N2"/>'
    '<number:number-style style:name="N3">'
    '<number:number number:decimal-places="0" number:min-integer-digits="5"/>'
    "</number:number-style>"
    '<number:number-style style:name="N4"><number:number number:decimal-places="0"'
    ' number:min-integer-digits="5"/><number:text> pcs</number:text></number:number-style>'
    + "".join(
        f'<number:number-style style:name="N{place}">{written}</number:number-style>'
        for place, written in CODES.items()
    )
    + "".join(
        f'<style:style style:name="ce{place}" style:family="table-cell"'
        f' style:data-style-name="N{place}"/>'
        for place in (1, 2, 3, 4, *CODES)
    )
    + '<style:style style:name="ce5" style:family="table-cell" style:parent-style-name="ce1"/>'
)
HIDDEN = (
    '<style:style style:name="ta2" style:family="table">'
    '<style:table-properties table:display="false"/></style:style>'
)


def read(path: Path, content: bytes, **options: Any) -> Table:
    path.write_bytes(content)
    chosen = ReadOptions(TableFormat.ODS, **{"header_row": 0, **options})
    unpacked_size(path, chosen)
    return open_table([path], chosen)


def value_of(path: Path, cell: str, columns: str = "") -> Any:
    """The value of a cell in the second column."""
    rows = open_sheet(open_cell("string", "x") + cell, columns=columns)
    (row,) = read(path, open_document(rows, styles=SPANS)).rows()
    return row[1] if len(row) > 1 else None


def styled(kind: str, style: str, **values: object) -> str:
    return open_cell(kind, "", **{"table:style-name": style, **values})


CELLS: list[tuple[str, Any]] = [
    (open_cell("float", "1.5", value="1.5"), 1.5),
    (open_cell("float", value="5"), 5),
    (open_cell("percentage", "25.6%", value="0.256"), Percent(0.256)),
    (open_cell("percentage", value="1"), Percent(1)),
    (open_cell("currency", "5 €", value="5", currency="EUR"), Amount(5)),
    (open_cell("currency", value="-5.5", currency="CHF"), Amount(-5.5)),
    (open_cell("date", date_value="2024-01-02"), date(2024, 1, 2)),
    (open_cell("date", date_value="2024-01-02T00:00:00"), date(2024, 1, 2)),
    (open_cell("date", date_value="2024-01-02T10:30:00.499999999"),
     datetime(2024, 1, 2, 10, 30, 0, 500_000)),  # noqa: DTZ001  # moments of workbooks have no zone
    (open_cell("date", "44 BC", date_value="-0044-03-15"), "44 BC"),
    (open_cell("date", date_value="1899-12-31"), date(1899, 12, 31)),
    (open_cell("date", date_value="0033-04-03"), date(33, 4, 3)),
    (open_cell("date", "29.2.1900", date_value="1900-02-29"), "29.2.1900"),
    (open_cell("date", "1.1.10000", date_value="10000-01-01"), "1.1.10000"),
    (open_cell("date", date_value="2024-01-02T10:30:00.9999999"),
     datetime(2024, 1, 2, 10, 30, 1)),  # noqa: DTZ001
    (open_cell("date", date_value="2024-01-02T10:30:00,25"),
     datetime(2024, 1, 2, 10, 30, 0, 250_000)),  # noqa: DTZ001
    (open_cell("time", time_value="PT12H10M54,0000S"), time(12, 10, 54)),
    (open_cell("time", time_value="PT0H0M0,5S"), time(0, 0, 0, 500_000)),
    (open_cell("time", time_value="P0Y0M0DT5H"), time(5)),
    (open_cell("time", time_value="P0Y0M2DT0H"), timedelta(days=2)),
    (open_cell("time", time_value="PT90M"), time(1, 30)),
    (open_cell("time", time_value="PT23H59M59.9999S"), timedelta(days=1)),
    (open_cell("time", "a year", time_value="P1Y"), "a year"),
    (open_cell("time", time_value="PT09H30M00S"), time(9, 30)),
    (open_cell("time", time_value="PT00H00M00S"), time(0)),
    (styled("time", "ce2", time_value="PT23H59M59S"), time(23, 59, 59)),
    (open_cell("time", time_value="PT27H17M54S"), timedelta(hours=27, minutes=17, seconds=54)),
    (open_cell("time", time_value="P1DT3H17M54S"), timedelta(hours=27, minutes=17, seconds=54)),
    (open_cell("time", time_value="PT24H00M00S"), timedelta(days=1)),
    (open_cell("time", time_value="-PT01H00M00S"), timedelta(hours=-1)),
    (open_cell("time", time_value="PT30H0M0.250000000S"), timedelta(hours=30, milliseconds=250)),
    (styled("time", "ce1", time_value="PT02H30M00S"), timedelta(hours=2, minutes=30)),
    (styled("time", "ce5", time_value="PT02H30M00S"), timedelta(hours=2, minutes=30)),
    (open_cell("time", "soon", time_value="PT"), "soon"),
    (open_cell("boolean", "TRUE", boolean_value="true"), True),
    (open_cell("boolean", boolean_value="false"), False),
    (styled("float", "ce3", value="123"), "00123"),
    (styled("float", "ce3", value="1234567"), "1234567"),
    (styled("float", "ce3", value="1.5"), 1.5),
    (styled("float", "ce4", value="123"), 123),
    (styled("float", "ce6", value="123456789"), "123-45-6789"),
    (styled("float", "ce6", value="6789"), "000-00-6789"),
    (styled("float", "ce6", value="12345678901234567"), "12345678901-23-4567"),
    (styled("float", "ce6", value="1.5"), 1.5),
    (styled("float", "ce7", value="49301234567"), "+49301234567"),
    (styled("float", "ce8", value="5551234567"), "(555) 123-4567"),
    (styled("float", "ce9", value="12"), "INV-0012"),
    # Units, conditions, a single digit and text beyond the digits make no code.
    *((styled("float", f"ce{place}", value="12"), 12) for place in (10, 11, 12, 13)),
    (open_cell("string", "text", string_value="stated"), "stated"),
    (open_cell("", "text"), "text"),
    (open_cell("float", "#NUM!", value="0", **{"table:formula": "of:=1/0"}), ErrorCell("#NUM!")),
    (open_cell("string", "Err:508", **{"table:formula": "of:=("}), ErrorCell("Err:508")),
    (open_cell("string", "#N/A", **{"calcext:value-type": "error"}), ErrorCell("#N/A")),
    (open_cell("string", "#REF!"), "#REF!"),
    (open_cell("float", "3", value="3", **{"table:formula": "of:=1+2"}), 3),
    (open_cell("string", "ab", string_value="ab", **{"table:formula": "of:=x"}), "ab"),
    (open_cell("float", "many", value="many"), "many"),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "expected"), CELLS)
def test_a_cell_is_read_by_its_type(tmp_path: Path, cell: str, expected: Any) -> None:
    found = value_of(tmp_path / "file", cell)
    assert (type(found), found) == (type(expected), expected)


def test_a_cell_has_the_style_of_its_column(tmp_path: Path) -> None:
    columns = (
        '<table:table-column table:default-cell-style-name="ce2"/>'
        '<table:table-column table:default-cell-style-name="ce1"'
        ' table:number-columns-repeated="3"/>'
    )
    cell = open_cell("time", time_value="PT02H00M00S")
    assert value_of(tmp_path / "file", cell, columns) == timedelta(hours=2)


TEXTS = [
    ("<text:p>Main Street 5<text:line-break/>10115 Berlin</text:p>", "Main Street 5\n10115 Berlin"),
    ("<text:p>a<text:tab/>b</text:p>", "a\tb"),
    ('<text:p>a<text:s text:c="3"/>b<text:s/>c</text:p>', "a   b c"),
    ("<text:p>a <text:s/>b</text:p>", "a  b"),
    ("<text:p>one</text:p><text:p>two</text:p>", "one\ntwo"),
    ("<text:p>one</text:p><text:p/><text:p>two</text:p>", "one\n\ntwo"),
    ("<text:p/><text:p>two</text:p>", "\ntwo"),
    (
        "<text:p>a <text:span>b<text:line-break/><text:span>c</text:span></text:span> d</text:p>",
        "a b\nc d",
    ),
    ('<text:p>see <text:a href="x">this<text:tab/>link</text:a>.</text:p>', "see this\tlink."),
    ("<office:annotation><text:p>note</text:p></office:annotation><text:p>cell</text:p>", "cell"),
    ("<text:p>a<office:annotation><text:p>note</text:p></office:annotation> b</text:p>", "a b"),
    ("<text:p>cell</text:p><draw:frame><text:p>box</text:p></draw:frame>", "cell"),
    ("<text:p>\n  in\n  lines </text:p>\n", "in lines "),
    ("<text:p>&lt;&amp;&#10;&gt;</text:p>", "<& >"),
    ("<text:p>漢<text:ruby-text>かん</text:ruby-text></text:p>", "漢"),
]  # fmt: skip


@pytest.mark.parametrize(("shown", "expected"), TEXTS)
@pytest.mark.parametrize("kind", ["string", ""])
def test_text_is_read_as_it_is_shown(tmp_path: Path, kind: str, shown: str, expected: str) -> None:
    assert value_of(tmp_path / "file", open_cell(kind, shown)) == expected


def as_paragraphs(text: str) -> str:
    """A text as LibreOffice writes it: white space that counts is an element."""
    lines = [escape(line).replace(" ", "<text:s/>") for line in text.split("\n")]
    return f"<text:p>{'<text:line-break/>'.join(lines)}</text:p>".replace("\t", "<text:tab/>")


@given(
    text=st.text(
        st.characters(codec="utf-8", categories=["L", "N", "P", "S"]) | st.sampled_from("\t  \n"),
        min_size=1,
    ).filter(lambda text: text.strip() and not text.startswith("#"))
)
def test_white_space_that_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("sheet") / "file"
    assert value_of(path, open_cell("string", as_paragraphs(text))) == text


def kinds_of(table: Table) -> dict[str, FieldKind]:
    found = profiles(table.headers, table.rows(), Conventions())
    return {one.label: one.kind for one in inferred_columns(table.headers, found)}


NAMES = ("Name", "Share", "Price", "Worked", "At", "Code", "Day")
FORMATS = ("0.0%", "[$€-407] #,##0.00", "[h]:mm:ss", "hh:mm", "00000", "yyyy-mm-dd")


def as_xlsx() -> bytes:
    rows = ["".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in NAMES)]
    for name, *values in [
        ("a", 0.256, 5, 27 / 24, 0.25, 123, 45_000),
        ("b", 1, 7.5, 0.5, 0.5, 7, 45_001),
    ]:
        cells = f'<c t="inlineStr"><is><t>{name}</t></is></c>'
        rows.append(
            cells
            + "".join(
                f'<c s="{style}"><v>{value}</v></c>' for style, value in enumerate(values, start=1)
            )
        )
    return packed({SHEET: sheet(*rows), STYLES: styles(*FORMATS)})


def as_ods() -> bytes:
    def row(name: str, share: str, price: str, span: str, at: str, code: str, day: str) -> str:
        return (
            open_cell("string", name)
            + open_cell("percentage", value=share)
            + open_cell("currency", value=price, currency="EUR")
            + styled("time", "ce1", time_value=span)
            + styled("time", "ce2", time_value=at)
            + styled("float", "ce3", value=code)
            + open_cell("date", date_value=day)
        )

    header = "".join(open_cell("string", name) for name in NAMES)
    first = row("a", "0.256", "5", "PT27H", "PT6H", "123", "2023-03-15")
    second = row("b", "1", "7.5", "PT12H", "PT12H", "7", "2023-03-16")
    return open_document(open_sheet(header, first, second), styles=SPANS)


def test_a_sheet_suggests_the_same_fields_and_values_as_xlsx(tmp_path: Path) -> None:
    (tmp_path / "xlsx").write_bytes(as_xlsx())
    xlsx = open_table([tmp_path / "xlsx"], ReadOptions(TableFormat.XLSX))
    ods = read(tmp_path / "ods", as_ods(), header_row=1)
    assert kinds_of(ods) == kinds_of(xlsx) == {
        "Name": K.TEXT,
        "Share": K.PERCENT,
        "Price": K.CURRENCY,
        "Worked": K.DURATION,
        "At": K.TIME,
        "Code": K.TEXT,
        "Day": K.DATE,
    }  # fmt: skip
    assert [*map(list, ods.rows())] == [*map(list, xlsx.rows())]


def test_spans_of_a_column_without_styles_agree(tmp_path: Path) -> None:
    times = [open_cell("time", time_value=each) for each in ("PT27H", "PT2H")]
    content = open_document(open_sheet(open_cell("string", "Worked"), *times))
    assert kinds_of(read(tmp_path / "file", content, header_row=1)) == {"Worked": K.DURATION}


def test_rows_and_sheets_have_their_places(tmp_path: Path) -> None:
    def many(name: str, times: int, cell: str = "<table:table-cell/>") -> str:
        return cell.replace("-cell", f'-cell table:number-{name}-repeated="{times}"', 1)

    empty = '<table:table-row table:number-rows-repeated="1048574"/>'
    rows = open_sheet(
        many("columns", 2) + open_cell("string", "Name") + many("columns", 16_000),
        many("columns", 2) + many("columns", 2, open_cell("string", "x")),
        name="Second",
    ).replace("</table:table>", f"{empty}</table:table>")
    rows = rows.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="3">', 1)
    content = open_document(
        open_sheet(open_cell("string", "secret"), name="Hidden", style="ta2"),
        rows,
        open_sheet(name="Empty"),
        styles=HIDDEN,
        before="<table:tracked-changes><table:table><table:table-row><table:table-cell>"
        "<text:p>old</text:p></table:table-cell></table:table-row></table:table>"
        "</table:tracked-changes>",
    )
    table = read(tmp_path / "file", content)
    assert (table.sheet_name, table.sheets) == ("Second", ["Second", "Empty"])
    assert [*map(list, table.rows())] == [["Name", None]] * 3 + [["x", "x"]]
    assert [*map(list, read(tmp_path / "file", content, range="D4:E9").rows())] == [["x"]]
    hidden = read(tmp_path / "file", content, sheet_name="Hidden")
    assert [*hidden.rows()] == [("secret",)]
    with pytest.raises(SourceProblem, match=r"Sheet Third not found\. Sheets: Second, Empty"):
        read(tmp_path / "file", content, sheet_name="Third")
    with pytest.raises(SourceProblem, match="Empty is empty"):
        read(tmp_path / "file", content, sheet_name="Empty")


def test_formulas_without_a_value_are_known(tmp_path: Path) -> None:
    formula = open_cell(**{"table:formula": "of:=1+1"})
    content = open_document(
        open_sheet(open_cell("string", "A") * 2, open_cell("string", "x") + formula)
    )
    assert read(tmp_path / "file", content, header_row=1).uncalculated == {1}


REFUSED: dict[str, tuple[bytes, ErrorKind, str]] = {
    "encrypted": (
        open_document(manifest="<manifest:encryption-data/>"),
        ErrorKind.PARSE,
        "without a password",
    ),
    "broken": (open_document("<table:table>"), ErrorKind.PARSE, "damaged: mismatched tag"),
    "no number of rows": (
        open_document(
            '<table:table><table:table-row table:number-rows-repeated="x"/></table:table>'
        ),
        ErrorKind.PARSE,
        "damaged",
    ),
    "too many columns": (
        open_document(
            open_sheet(open_cell("string", "x", **{"table:number-columns-repeated": 10**9}))
        ),
        ErrorKind.PARSE,
        "more than 16,384 columns",
    ),
    "too many rows": (
        open_document(
            open_sheet(open_cell("string", "x"), open_cell("string", "x")).replace(
                "<table:table-row>",
                '<table:table-row table:number-rows-repeated="1000000000">',
                1,
            )
        ),
        ErrorKind.TOO_LARGE,
        "more than 1,000,000 rows",
    ),
    "many spaces": (
        open_document(
            open_sheet(open_cell("", '<text:p>x<text:s text:c="999999999"/></text:p>' * 9))
        ),
        ErrorKind.TOO_LARGE,
        "larger than 32 KiB",
    ),
    "entities": (
        open_document(
            open_sheet(open_cell("string", "&e;")), lead='<!DOCTYPE a [<!ENTITY e "x">]>'
        ),
        ErrorKind.PARSE,
        "document type",
    ),
    "a long attribute": (
        open_document(open_sheet(open_cell("string", x=os.urandom(5_000_000).hex()))),
        ErrorKind.PARSE,
        "a tag in it is too long",
    ),
    "no sheet": (open_document(), ErrorKind.PARSE, "no sheet with cells"),
}


@pytest.mark.parametrize(("content", "kind", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_a_workbook_that_cannot_be_read_says_why(
    tmp_path: Path, content: bytes, kind: ErrorKind, said: str
) -> None:
    with pytest.raises(SourceProblem, match=said) as problem:
        [*read(tmp_path / "file", content).rows()]
    assert problem.value.kind is kind
