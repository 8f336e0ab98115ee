"""Numbers of days in workbooks: what Excel shows, where calamine reads another day, or none."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from html import escape
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.sources.readers.opening import open_table
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.sources.tabular.rules.cells import Shown, is_odd, serial, shown_by
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.conversion import converter
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions, TableFormat
from tests.support.workbooks import MAIN, SHEET, STYLES, WORKBOOK, number, packed, sheet, styles
from tests.support.workbooks import text as text_cell

DAY, MOMENT, TIME, SPAN = Shown.DAY, Shown.MOMENT, Shown.TIME, Shown.SPAN
_1904 = WORKBOOK.replace("<sheets>", '<workbookPr date1904="1"/><sheets>')


def column(path: Path, values: Sequence[object], code: str, *, since_1904: bool = False) -> Any:
    """The values of a column of numbers in a format."""
    rows = [number(f"A{place}", value, 1) for place, value in enumerate(values, start=1)]
    parts = {SHEET: sheet(*rows), STYLES: styles(escape(code))}
    path.write_bytes(packed({**parts, **({"xl/workbook.xml": _1904} if since_1904 else {})}))
    table = open_table([path], ReadOptions(TableFormat.XLSX, header_row=0))
    return [row[0] for row in table.rows()]


def moment(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  # workbooks know no zone


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("yyyy-mm-dd", DAY),
        ("d", DAY),
        ("m", DAY),
        ("mmm-yy", DAY),
        ("dddd", DAY),
        ("[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", DAY),
        ("m/d/yy;@", DAY),
        ('yyyy"年"m"月"d"日"', DAY),
        ("[$-ja-JP-x-gannen]ggge", DAY),
        ("aaaa", DAY),
        ('"Week of "d mmm', DAY),
        ("[Red]yyyy", DAY),
        ("bbbb", DAY),
        ("dd/mm/yyyy hh:mm", MOMENT),
        ("d.m. h", MOMENT),
        ("h:mm AM/PM", TIME),
        ("mm:ss.0", TIME),
        ("ss,00", TIME),
        ("h:mm;@", TIME),
        ("[h]:mm", SPAN),
        ("[mm]:ss", SPAN),
        ("[Blue][h]:mm:ss.000", SPAN),
        ("[ss]", SPAN),
        ("General", None),
        ('General" days"', None),
        ("0.00", None),
        ("0.00E+00", None),
        ('0.0 "h"', None),
        ("\\d0", None),
        ("0_d", None),
        ("0*d", None),
        ("#,##0.00 [$€-407]", None),
        ("[$-409]0", None),
        ("@", None),
        ("", None),
    ],
)
def test_a_number_format_says_what_it_shows(code: str, shown: Shown | None) -> None:
    assert shown_by(code) is shown


CELLS: list[tuple[str, object, Any]] = [
    ("yyyy-mm-dd", 1, date(1900, 1, 1)),
    ("yyyy-mm-dd", 59, date(1900, 2, 28)),
    # Excel shows a day that no calendar has: a date field refuses it, and says so.
    ("yyyy-mm-dd", 60, "1900-02-29"),
    ("d/m/yyyy h:mm", 60.5, "1900-02-29T12:00:00"),
    ("yyyy-mm-dd", 61, date(1900, 3, 1)),
    ("yyyy-mm-dd", 0, "1900-01-00"),
    ("d/m/yyyy h:mm", 0.25, time(6)),
    ("yyyy-mm-dd", -1, -1),
    ("d/m/yyyy h:mm", -0.5, -0.5),
    ("yyyy-mm-dd", 2_958_465, date(9999, 12, 31)),
    ("yyyy-mm-dd", 2_958_466, 2_958_466),
    ("yyyy-mm-dd", "4.5E4", date(2023, 3, 15)),
    ("yyyy-mm-dd", "6E1", "1900-02-29"),
    ("h:mm", 0, time(0)),
    ("h:mm:ss", 0.25, time(6)),
    ("h:mm", 1, timedelta(days=1)),
    ("h:mm:ss", 1.5, timedelta(hours=36)),
    ("h:mm", 60.5, timedelta(days=60, hours=12)),
    ("h:mm", -0.5, timedelta(hours=-12)),
    ("h:mm", 45_000.25, moment(2023, 3, 15, 6)),
    ("[h]:mm", -0.5, timedelta(hours=-12)),
    ("[h]:mm", 60, timedelta(days=60)),
    ("mm:ss.000", 1.1574e-05, time(0, 0, 1)),
    ("[h]:mm:ss.000", 1.123456789, timedelta(days=1, milliseconds=10_666_667)),
    ("yyyy-mm-dd hh:mm:ss.000", 45_000.123456, moment(2023, 3, 15, 2, 57, 46, 598_000)),
    ("yyyy-mm-dd", 44_000.999999999, date(2020, 6, 19)),
    ("ggge", 45_000, date(2023, 3, 15)),
    ("aaaa", 45_000.25, moment(2023, 3, 15, 6)),
]


@pytest.mark.parametrize(("code", "value", "expected"), CELLS)
def test_a_number_of_days_is_what_excel_shows(
    tmp_path: Path, code: str, value: object, expected: Any
) -> None:
    assert repr(column(tmp_path / "file", [45_000, value], code)[1]) == repr(expected)


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        ("yyyy-mm-dd", 0, date(1904, 1, 1)),
        ("d/m/yyyy h:mm", 0.25, moment(1904, 1, 1, 6)),
        ("yyyy-mm-dd", 59, date(1904, 2, 29)),
        ("yyyy-mm-dd", 60, date(1904, 3, 1)),
        ("yyyy-mm-dd", -1, -1),
        ("h:mm", 0.25, time(6)),
        ("h:mm", 1.5, timedelta(hours=36)),
        ("h:mm", -0.5, timedelta(hours=-12)),
        ("[h]:mm", -1.5, timedelta(hours=-36)),
        ("yyyy-mm-dd", 45_000, date(2027, 3, 16)),
        ("ggge", 45_000, date(2027, 3, 16)),
        ("yyyy-mm-dd", 2_957_003, date(9999, 12, 31)),
        ("yyyy-mm-dd", 2_957_004, 2_957_004),
    ],
)
def test_a_workbook_may_count_from_1904(
    tmp_path: Path, code: str, value: object, expected: Any
) -> None:
    found = column(tmp_path / "file", [0.1, value], code, since_1904=True)
    assert repr(found[1]) == repr(expected)


@pytest.mark.parametrize(
    "cell",
    [
        '<c s="1" r="A2"><v>60</v></c>',
        "<c r='A2' s='1'><v> 60 </v></c>",
        '<c r="A2" s="1" t="n"><f>59+1</f><v>60</v></c>',
        '<c r="A2" s="1"><f t="shared" si="0"/><v>60.0</v></c>',
        f'<c r="A2" s="1"><f>{"59+1+0*" * 1_000}0</f><v>060</v></c>',
        f'<x:c {MAIN.replace("xmlns", "xmlns:x")} r="A2" s="1"><x:v>60</x:v></x:c>',
    ],
    ids=["order", "quotes", "formula", "shared", "long formula", "prefix"],
)
def test_a_day_is_found_however_its_cell_is_written(tmp_path: Path, cell: str) -> None:
    rows = [text_cell("A1", "Day"), cell]
    path = tmp_path / "file"
    path.write_bytes(packed({SHEET: sheet(*rows), STYLES: styles("yyyy-mm-dd")}))
    table = open_table([path], ReadOptions(TableFormat.XLSX, header_row=1))
    assert [*map(list, table.rows())] == [["1900-02-29"]]


@pytest.mark.parametrize("built_in", [14, 15, 16, 17, 22, 27, 31, 36, 50, 57])
def test_formats_that_no_workbook_writes_down_show_days(tmp_path: Path, built_in: int) -> None:
    written = f'<styleSheet {MAIN}><cellXfs><xf/><xf numFmtId="{built_in}"/></cellXfs></styleSheet>'
    path = tmp_path / "file"
    path.write_bytes(packed({SHEET: sheet(number("A1", 60, 1)), STYLES: written}))
    table = open_table([path], ReadOptions(TableFormat.XLSX, header_row=0))
    assert [*map(list, table.rows())] == [["1900-02-29"]]


def test_hours_beyond_a_day_make_a_column_of_spans(tmp_path: Path) -> None:
    values = column(tmp_path / "file", [0.25, 0.5, 1.5, 2], "h:mm")
    found = profiles(["Worked"], [[value] for value in values], Conventions())
    assert [one.kind for one in inferred_columns(["Worked"], found)] == [FieldKind.DURATION]


@pytest.mark.takes(seconds=2)
@given(
    ms=st.integers(0, 2_950_000 * 86_400_000),
    code=st.sampled_from(["yyyy-mm-dd", "d/m/yy h:mm:ss.000", "h:mm", "[h]:mm"]),
    since_1904=st.booleans(),
)
def test_other_numbers_of_days_are_read_as_calamine_reads_them(
    tmp_path_factory: pytest.TempPathFactory, ms: int, code: str, since_1904: bool
) -> None:
    value = ms / 86_400_000
    shown = shown_by(code)
    assert shown is not None
    if is_odd(value, shown, since_1904):
        return
    path = tmp_path_factory.mktemp("sheet") / "file"
    [found] = column(path, [value], code, since_1904=since_1904)
    assert found == serial(value, shown, since_1904)


@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    shown=st.sampled_from(Shown),
    since_1904=st.booleans(),
)
def test_any_number_has_a_cell(value: float, shown: Shown, since_1904: bool) -> None:
    assert serial(value, shown, since_1904) is not None


@pytest.mark.parametrize("code", ["yyyy-mm-dd hh:mm:ss.000", "d/m/yy h:mm:ss.0", "h:mm:ss,00 d.m."])
def test_parts_of_a_second_that_are_shown_are_read(tmp_path: Path, code: str) -> None:
    values = [46082.56267503472, 46082.5]
    assert column(tmp_path / "file", values, code) == [
        moment(2026, 3, 1, 13, 30, 15, 123000),
        moment(2026, 3, 1, 12, 0),
    ]


def test_a_moment_keeps_its_parts_of_a_second() -> None:
    spec = FieldSpec(id=UUID(int=0), key="at", label="At", kind=FieldKind.DATETIME)
    convert = converter(spec, Conventions())
    assert convert(moment(2026, 3, 1, 13, 30, 15, 123000)) == "2026-03-01T13:30:15.123Z"
