"""Cells of workbooks: the same as openpyxl reads them, and what calamine alone does not say."""

import io
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from activities.sources.readers.opening import open_table
from activities.sources.readers.table import Table
from activities.sources.readers.workbook_xml import currency_of, is_percent
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.sources.tabular.rules.cells import ErrorCell, cell
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.conversion import converter
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions, SourceProblem, TableFormat
from tests.support.exploring import examples
from tests.support.workbooks import (
    MAIN,
    SHEET,
    STRINGS,
    STYLES,
    number,
    packed,
    sheet,
    styles,
    text,
)

Grid = list[list[Any]]


def read(path: Path, content: bytes, **options: Any) -> Table:
    path.write_bytes(content)
    return open_table([path], ReadOptions(TableFormat.XLSX, **{"header_row": 0, **options}))


def cells(path: Path, content: bytes) -> Grid:
    return [list(row) for row in read(path, content).rows()]


def by_openpyxl(content: bytes) -> Grid:
    """The rows from the first to the last column that have a cell, without empty ones."""
    book = load_workbook(io.BytesIO(content), data_only=True)
    rows = [
        [ErrorCell(one.value) if one.data_type == "e" else cell(_number(one.value)) for one in row]
        for row in book.worksheets[0].iter_rows(min_row=1, min_col=1)
    ]
    used = [place for row in rows for place, value in enumerate(row) if value is not None]
    if not used:
        return []
    cut = [row[min(used) : max(used) + 1] for row in rows]
    return [row for row in cut if any(value is not None for value in row)]


def _number(value: Any) -> Any:
    """Workbooks know one kind of number."""
    return float(value) if type(value) is int else value


def typed(grid: Grid) -> list[list[tuple[type, Any]]]:
    return [[(type(value), value) for value in row] for row in grid]


_DAYS = st.dates(date(1904, 1, 2), date(9999, 12, 30))
_TIMES = st.builds(
    lambda at, ms: at.replace(microsecond=ms * 1_000), st.times(), st.integers(0, 999)
)
_TEXTS = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="_\ufffe\uffff"
    )
    | st.sampled_from("\n\t ")
).filter(lambda value: not value.startswith(("=", "#")))
_CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300),
    st.sampled_from([0.1 + 0.2, 1e15, 2**53 + 1, 0.5, "#N/A", "#DIV/0!", "00123", "1e5"]),
    _TEXTS,
    _DAYS,
    _TIMES,
    st.builds(datetime.combine, _DAYS, _TIMES),
    st.integers(0, 10**9).map(lambda ms: timedelta(milliseconds=ms)),
)
_GRIDS = st.lists(st.lists(_CELLS, max_size=5), max_size=6)


def written(grid: Sequence[Sequence[Any]], since_1904: bool) -> bytes:
    book = Workbook()
    if since_1904:
        book.epoch = CALENDAR_MAC_1904
    assert book.active is not None
    for row in grid:
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


@pytest.mark.long
@pytest.mark.takes(seconds=3)
@settings(max_examples=examples(25, explored=2_500))
@given(grid=_GRIDS, since_1904=st.booleans())
def test_calamine_and_openpyxl_read_the_same_cells(
    tmp_path_factory: pytest.TempPathFactory, grid: Grid, since_1904: bool
) -> None:
    content = written(grid, since_1904)
    path = tmp_path_factory.mktemp("sheet") / "file"
    expected = by_openpyxl(content)
    if not expected:
        with pytest.raises(SourceProblem, match="is empty"):
            cells(path, content)
        return
    assert typed(cells(path, content)) == typed(expected)


ODD = packed(
    {
        SHEET: sheet(
            "",
            "",
            number("C3", 1.5) + text("D3", "inline") + '<c r="E3" t="b"><v>1</v></c>',
            '<c r="C4"><f>1+1</f><v>2</v></c><c r="D4" t="str"><f>"a"</f><v>a</v></c>'
            '<c r="E4" t="b"><f>1&gt;2</f><v>0</v></c>',
            '<c r="C5" t="e"><f>1/0</f><v>#DIV/0!</v></c><c r="D5" t="s"><v>0</v></c>'
            '<c r="E5" t="e"><v>#REF!</v></c>',
            "",
            '<c r="C7" t="inlineStr"><is><r><t xml:space="preserve">in </t></r>'
            "<r><t>parts</t></r></is></c>"
            '<c r="D7" t="s"><v>1</v></c>' + number("E7", 45_000.25, style=1),
            number("C8", 45_000, style=1)
            + number("D8", 0.25, style=2)
            + number("E8", 1.5, style=3),
        ).replace("</sheetData>", '</sheetData><mergeCells><mergeCell ref="C8:C9"/></mergeCells>'),
        STRINGS: f'<sst {MAIN}><si><r><t xml:space="preserve">rich </t></r><r><t>text</t></r></si>'
        "<si><t>漢字</t><rPh sb='0' eb='2'><t>かんじ</t></rPh></si></sst>",
        STYLES: styles("yyyy-mm-dd hh:mm", "h:mm", "[h]:mm"),
    }
)


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_every_kind_of_cell_is_read_as_openpyxl_reads_it(tmp_path: Path) -> None:
    found = cells(tmp_path / "file", ODD)
    assert found == [
        [1.5, "inline", True],
        [2, "a", False],
        [ErrorCell("#DIV/0!"), "rich text", ErrorCell("#REF!")],
        ["in parts", "漢字", datetime.combine(date(2023, 3, 15), time(6))],
        [date(2023, 3, 15), time(6), timedelta(hours=36)],
    ]
    assert typed(found) == typed(by_openpyxl(ODD))


def suggested(path: Path, content: bytes) -> dict[str, FieldKind]:
    table = read(path, content, header_row=1)
    found = profiles(table.headers, table.rows(), Conventions())
    return {one.label: one.kind for one in inferred_columns(table.headers, found)}


SHOWN = packed(
    {
        SHEET: sheet(
            *(
                "".join(text(f"{letter}1", letter) for letter in "ABCDEF"),
                text("A2", "x") + number("B2", 0.5, 1) + number("C2", 9.5, 2) + number("D2", 0.5, 1)
                + number("E2", 0.5, 3) + number("F2", 7, 4),
                text("A3", "y") + number("B3", 0.07, 1) + number("C3", 3, 2) + number("D3", 2)
                + number("E3", 0.25, 3) + number("F3", 8, 4),
            )
        ),
        STYLES: styles("0.0%", "[$€-407] #,##0.00", "0.0 &quot;%&quot;", "[$-409]0"),
    }
)  # fmt: skip


def test_the_format_of_numbers_tells_percentages_and_amounts(tmp_path: Path) -> None:
    assert suggested(tmp_path / "file", SHOWN) == {
        "A": FieldKind.TEXT,
        "B": FieldKind.PERCENT,
        "C": FieldKind.CURRENCY,
        "D": FieldKind.NUMBER,
        "E": FieldKind.NUMBER,
        "F": FieldKind.NUMBER,
    }


@pytest.mark.parametrize(
    ("code", "percent", "currency"),
    [
        ("General", False, False),
        ("0%", True, False),
        ('0 "%"', False, False),
        ("0\\%", False, False),
        ("[Red]0.00%;[Blue]-0.00%", True, False),
        ('"$"#,##0', False, True),
        ("_-* #,##0.00 [$€-407]_-", False, True),
        ("[$-409]d-mmm", False, False),
    ],
)
def test_a_number_format_says_what_is_shown(code: str, percent: bool, currency: bool) -> None:
    assert (is_percent(code), currency_of(code) is not None) == (percent, currency)


@pytest.mark.parametrize(
    ("code", "currency"),
    [
        ('#,##0.00 "€"', "€"),
        ("[$€-407] #,##0.00", "€"),
        ("[$CHF] #,##0.00", "CHF"),
        ("#,##0.00 [$kr-41D]", "kr"),
        ('#,##0.00 "zł"', "zł"),
        ('#,##0.00 "₽"', "₽"),
        ("[$₹-4009] #,##0.00", "₹"),
        ('0 "EUR"', "EUR"),
        ('0 "ALL"', None),
        ('0 "krona"', None),
        ("[$-F800]dddd", None),
    ],
)
def test_a_number_format_says_which_currency(code: str, currency: str | None) -> None:
    assert currency_of(code) == currency


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (("[$€-407] #,##0", "[$€-2] #,##0.00"), FieldKind.CURRENCY),
        (("[$€-407] #,##0", "[$$-409]#,##0"), FieldKind.TEXT),
        (("[$€-407] #,##0", "0"), FieldKind.NUMBER),
    ],
)
def test_a_column_of_amounts_has_one_currency(
    tmp_path: Path, codes: tuple[str, str], kind: FieldKind
) -> None:
    rows = [text("A1", "v"), number("A2", 5, 1), number("A3", 7, 2)]
    content = packed({SHEET: sheet(*rows), STYLES: styles(*codes)})
    table = read(tmp_path / "file", content, header_row=1)
    [column] = profiles(table.headers, table.rows(), Conventions())
    assert column.kind is kind


def test_formulas_without_values_are_reported(tmp_path: Path) -> None:
    content = written([["Name", "Sum", "Said"], ["a", "=1+1", "x"], ["b", "=1+2", "y"]], False)
    assert read(tmp_path / "file", content, header_row=1).uncalculated == {1}
    calculated = packed(
        {SHEET: sheet(text("A1", "A"), '<c r="A2" t="str"><f>""</f><v></v></c>', number("A3", 1))}
    )
    assert read(tmp_path / "file", calculated, header_row=1).uncalculated == set()


def test_a_missing_sheet_is_reported_with_the_present_ones(tmp_path: Path) -> None:
    book = Workbook()
    assert book.active is not None
    book.active.title = "Prices"
    book.active["B2"] = 1
    book.create_sheet("Nothing")
    content = io.BytesIO()
    book.save(content)
    options: Any
    for options, said in [
        ({"sheet_name": "Price"}, "Sheet Price not found. Sheets: Prices, Nothing"),
        ({"sheet_name": "Nothing"}, "Nothing is empty. Choose another sheetName: Prices"),
        ({"range": "D4:F9"}, "no cells in D4:F9; its cells are in B2:B2"),
        ({"header_row": 9}, "no header row"),
    ]:
        with pytest.raises(SourceProblem, match=said):
            read(tmp_path / "file", content.getvalue(), **options)
    found = read(tmp_path / "file", content.getvalue(), range="A1:C3")
    assert (found.headers, [*found.rows()]) == (["A", "B"], [(None, 1)])


@pytest.mark.parametrize("rows", [3, 9_000], ids=["few", "beyond the head"])
def test_cells_of_a_column_have_the_format_of_their_own(tmp_path: Path, rows: int) -> None:
    """A total below percentages is no percentage, and a code above numbers stays a code."""
    shown = [number(f"A{row}", 0.256, 1) + number(f"B{row}", 123, 2) for row in range(2, rows)]
    last = number(f"A{rows}", 12, 3) + number(f"B{rows}", 45, 3)
    content = packed(
        {
            SHEET: sheet(text("A1", "a") + text("B1", "b"), *shown, last),
            STYLES: styles("0.0%", "00000", "0"),
        }
    )
    found = [*read(tmp_path / "file", content, header_row=1).rows()]
    spec = FieldSpec(id=UUID(int=0), key="share", label="Share", kind=FieldKind.PERCENT)
    convert = converter(spec, Conventions())
    assert [convert(row[0]) for row in (found[0], found[-1])] == [25.6, 12]
    assert [row[1] for row in (found[0], found[-1])] == ["00123", 45]


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("00000-0000", 12345678, "01234-5678"),
        ("000-00-0000", 1234567, "001-23-4567"),
        (r"00\-000", 1234, "01-234"),
        (r"\(000\)\ 000\-0000", 301234567, "(030) 123-4567"),
        ('0#" "##" "##" "##" "##', 612345678, "06 12 34 56 78"),
        ('0" "00" "00" | "00', 1234567, "1 23 45 | 67"),
        ('"INV-"00000', 12, "INV-00012"),
        ("[$-407]00000", 1067, "01067"),
        ("00-000", 1234567, "1234-567"),
        ("00-000", -1234, "-01-234"),
        ("00-000", 1.5, 1.5),
        ('00" kg"', 5, 5),
        ('00"%"', 5, 5),
        ('00" °"', 5, 5),
        ("0.00", 5, 5),
        ("#,##0", 5, 5),
        ("# ##0", 5, 5),
        ("00E+00", 5, 5),
        ("0", 5, 5),
    ],
)
def test_a_format_of_codes_shows_its_zeros_and_signs(
    tmp_path: Path, code: str, value: float, shown: Any
) -> None:
    escaped = code.replace('"', "&quot;")
    content = packed(
        {SHEET: sheet(text("A1", "a"), number("A2", value, 1)), STYLES: styles(escaped)}
    )
    found = read(tmp_path / "file", content, header_row=1)
    assert [*map(list, found.rows())] == [[shown]]


@pytest.mark.parametrize("written", ["<f>A2*2</f>", "<f>A2*2</f><v/>", "<f>A2*2</f><v></v>"])
def test_a_formula_without_a_value_is_found_in_any_row(tmp_path: Path, written: str) -> None:
    rows = [number(f"A{row}", row) for row in range(2, 9_000)]
    last = f'<c r="C9000">{written}</c>'
    calculated = '<c r="B9001"><f>A2*2</f><v>4</v></c><c r="D9001" t="str"><f>""</f><v></v></c>'
    content = packed({SHEET: sheet(text("A1", "a"), *rows, last, calculated)})
    assert read(tmp_path / "file", content, header_row=1).uncalculated == {2}


EURO, DOLLAR = '#,##0.00 "€"', "[$$-409]#,##0.00"


@pytest.mark.parametrize(
    ("codes", "kind", "shown"),
    [
        ((EURO, EURO), FieldKind.CURRENCY, (5, 7)),
        ((EURO, DOLLAR), FieldKind.TEXT, ("5 €", "7 $")),
        ((EURO, "0"), FieldKind.NUMBER, (5, 7)),
        ((EURO, "0%"), FieldKind.NUMBER, (5, 7)),
        ((DOLLAR, "00000"), FieldKind.TEXT, ("7 $", "00005")),
    ],
)
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
def test_amounts_of_several_currencies_are_text(
    tmp_path: Path, codes: tuple[str, str], kind: FieldKind, shown: tuple[Any, Any], later: bool
) -> None:
    values = (7, 5) if codes[0] == DOLLAR else (5, 7)
    lines = [text("A2", "a") + number("B2", values[0], 1)]
    # Rows beyond those whose formats are looked at first.
    lines += [text(f"A{row}", "x" * 200) for row in range(3, 2_003)] if later else []
    last = len(lines) + 2
    lines.append(text(f"A{last}", "z") + number(f"B{last}", values[1], 2))
    head = text("A1", "name") + text("B1", "price")
    written_codes = [code.replace('"', "&quot;") for code in codes]
    content = packed({SHEET: sheet(head, *lines), STYLES: styles(*written_codes)})
    path = tmp_path / "file"
    assert suggested(path, content) == {"name": FieldKind.TEXT, "price": kind}
    table = read(path, content, header_row=1)
    spec = FieldSpec(id=UUID(int=0), key="price", label="Price", kind=kind)
    convert = converter(spec, Conventions())
    found = [convert(row[1]) for row in table.rows() if row[1] is not None]
    assert tuple(found) == shown


TRANSITIONAL = "http://schemas.openxmlformats.org"


def strict(content: bytes) -> bytes:
    """The workbook as Excel saves a strict one, whose namespaces are others."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            part = old.read(name).decode()
            part = part.replace(f"{TRANSITIONAL}/spreadsheetml/2006", STRICT + "spreadsheetml")
            part = part.replace(f"{TRANSITIONAL}/officeDocument/2006", STRICT + "officeDocument")
            new.writestr(name, part)
    return written.getvalue()


STRICT = "http://purl.oclc.org/ooxml/"


def test_a_strict_workbook_is_read_as_any_other(tmp_path: Path) -> None:
    content = packed(
        {
            SHEET: sheet(
                "".join(text(f"{letter}1", letter) for letter in "ABCD"),
                number("A2", 0.5, 1)
                + number("B2", 1147386954405658704)
                + number("C2", 7, 2)
                + '<c r="D2" t="e"><v>#N/A</v></c>',
            ),
            STYLES: styles("0%", "00000"),
        }
    )
    found = cells(tmp_path / "file", strict(content))
    assert found == cells(tmp_path / "file", content)
    assert found[1] == [0.5, "1147386954405658704", "00007", ErrorCell("#N/A")]
