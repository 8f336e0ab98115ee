"""Columns converted at once give what their cells give one by one."""

import math
import unicodedata
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.fields.rules.fields import FieldKind, FieldSpec, Option
from models.data.fields.rules.value_conversion import LOST
from models.data.records.rules.values import GrowingField
from models.sources.tabular.rules.cells import Amount, Percent, cell
from models.sources.tabular.rules.conversion import (
    ConvertedRow,
    StagedLines,
    column_converter,
    converter,
    growing,
)
from models.sources.tabular.rules.formats import Conventions

KINDS = (
    *(FieldKind.TEXT, FieldKind.LONG_TEXT, FieldKind.RICH_TEXT, FieldKind.EMAIL, FieldKind.URL),
    *(FieldKind.PHONE, FieldKind.NUMBER, FieldKind.CURRENCY, FieldKind.PERCENT, FieldKind.RATING),
    *(FieldKind.CHECKBOX, FieldKind.DATE, FieldKind.DATETIME, FieldKind.JSON),
)
TEXTS = st.sampled_from(
    [
        *("a", " b ", "nul\x00", "\ud800", "x" * 10_001, "a@b.example", " a@b.example", "a@b"),
        *("https://a.example/?q=1", "https://ä.example", "ftp://a.example", "1.5", "-0", "0.10"),
        *("007", "1,234.5", "1.234", "1234567890123456", "true", "2026-01-31", "31.1.2026", "7 %"),
    ]
)
NUMBERS = st.one_of(
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 5.0, 2.0**53, 1e300, -1e101, math.inf]),
)
DAYS = st.dates(date(1900, 1, 1), date(2100, 1, 1))
SORTS: tuple[st.SearchStrategy[Any], ...] = (TEXTS, NUMBERS, DAYS, st.booleans())
OTHERS = st.sampled_from(
    [Percent(0.5), timedelta(hours=1), datetime.combine(date(2026, 1, 31), time(12)), [1], {"a": 1}]
)


@st.composite
def columns(draw: st.DrawFn) -> list[Any]:
    """Cells that are mostly of one sort."""
    sort = draw(st.sampled_from(SORTS))
    cells = draw(st.lists(st.one_of(sort, st.none()) if draw(st.booleans()) else sort, max_size=8))
    if draw(st.booleans()):
        cells.append(draw(st.one_of(*SORTS, OTHERS)))
    return [cell(each) for each in cells]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"precision": 1, "min": 0}])
@pytest.mark.parametrize("decimals", [".", ","])
@given(cells=columns())
def test_a_column_is_converted_as_its_cells_are(
    kind: FieldKind, settings: dict[str, Any], decimals: Any, cells: list[Any]
) -> None:
    spec = FieldSpec(id=UUID(int=0), key="field", label="", kind=kind, settings=settings)
    conventions = Conventions(decimal_separator=decimals)
    convert = converter(spec, conventions)
    found = column_converter(spec, conventions, convert)(cells)
    expected = [convert(each) for each in cells]
    assert [repr(each) for each in found.values] == [repr(each) for each in expected]
    lacking = any(
        each is None or not isinstance(each, bool | int | float | str | list | dict)
        for each in expected
    )
    assert found.gaps == lacking


BERLIN, EUR, USD = (
    {"timezone": "Europe/Berlin"},
    {"currencyCode": "EUR"},
    {"currencyCode": "USD"},
)
NIGHT = datetime(2026, 1, 31, 23, 30)  # noqa: DTZ001  # a workbook knows no offset


@pytest.mark.parametrize(
    ("kind", "settings", "given", "value"),
    [
        (FieldKind.PERCENT, {}, Percent(0.07), 7),
        (FieldKind.NUMBER, {}, Percent(0.07), 0.07),
        (FieldKind.TEXT, {}, Percent(0.07), "7%"),
        (FieldKind.CURRENCY, EUR, Amount(5.5, "EUR"), 5.5),
        (FieldKind.CURRENCY, USD, Amount(5.5, "EUR"), LOST),
        (FieldKind.CURRENCY, USD, Amount(5.5), 5.5),
        (FieldKind.NUMBER, USD, Amount(5.5, "EUR"), 5.5),
        (FieldKind.TEXT, {}, Amount(5.5, "EUR"), "5.5 EUR"),
        (FieldKind.TEXT, {}, Amount(5.5), "5.5"),
        (FieldKind.DATE, {}, date(2026, 1, 31), "2026-01-31"),
        (FieldKind.DATETIME, BERLIN, date(2026, 1, 31), "2026-01-30T23:00:00.000Z"),
        (FieldKind.NUMBER, {}, date(2026, 1, 31), LOST),
        (FieldKind.DATE, {}, NIGHT, "2026-01-31"),
        (FieldKind.DATETIME, BERLIN, NIGHT, "2026-01-31T22:30:00.000Z"),
        (FieldKind.DATETIME, {}, NIGHT.replace(microsecond=5_000), "2026-01-31T23:30:00.005Z"),
        (FieldKind.DATETIME, BERLIN, NIGHT.replace(tzinfo=UTC), "2026-01-31T23:30:00.000Z"),
        (FieldKind.TEXT, {}, NIGHT, "2026-01-31T23:30:00.000Z"),
        (FieldKind.TEXT, {}, time(9, 5), "09:05:00"),
        (FieldKind.TEXT, {}, timedelta(hours=1.5), "1:30:00"),
        (FieldKind.NUMBER, {}, timedelta(hours=1.5), 5_400_000),
        (FieldKind.NUMBER, {}, True, 1),
        (FieldKind.CHECKBOX, {}, 1, True),
        (FieldKind.CHECKBOX, {}, 2, LOST),
        (FieldKind.TEXT, {}, ["a", "b"], "a, b"),
        (FieldKind.TEXT, {}, ["a", 1], '["a", 1]'),
        (FieldKind.JSON, {}, ["a", "b"], ["a", "b"]),
    ],
)
def test_a_typed_cell_has_its_value_in_a_field(
    kind: FieldKind, settings: dict[str, Any], given: Any, value: Any
) -> None:
    spec = FieldSpec(id=UUID(int=0), key="field", label="", kind=kind, settings=settings)
    assert converter(spec, Conventions())(cell(given)) == value


@pytest.mark.parametrize(
    ("given", "single", "several"),
    [
        (None, None, None),
        ("done", "done", ["done"]),
        ("Open, done", "open_done", ["open", "done"]),
        ("New", "new", ["new"]),
        (["Open"], "open", ["open"]),
        (["Open", "Done", "open"], LOST, ["open", "done"]),
        ([5], "option_5", ["option_5"]),
        (["Open", "x" * 101], LOST, LOST),
    ],
)
def test_a_cell_names_options_and_makes_new_ones(given: Any, single: Any, several: Any) -> None:
    options = tuple(
        Option(id=name, key=name.casefold(), name=name, color="gray", order=place)
        for place, name in enumerate(("Open", "Done"))
    )

    def convert(kind: FieldKind) -> Any:
        spec = FieldSpec(id=UUID(int=0), key="field", label="", kind=kind, options=options)
        return growing(GrowingField(spec, lambda: UUID(int=1)))(cell(given))

    assert convert(FieldKind.SELECT) == single
    assert convert(FieldKind.MULTI_SELECT) == several


@given(
    st.lists(st.text(st.sampled_from("ae\u0301\u00e9\u212b\u00c5\uac00\u1100\u1161")), min_size=1)
)
def test_keys_in_other_normal_forms_are_the_same(keys: list[str]) -> None:
    lines = StagedLines(UUID(int=0), ["key", "title"])

    def identity(form: Literal["NFC", "NFD"], texts: list[str]) -> bytes:
        written = [unicodedata.normalize(form, text) for text in texts]
        row = ConvertedRow(written[0], {"key": written[-1], "form": form})
        # Behind the columns of the run, the position and the row, each with its length.
        return lines.line(0, 1, row)[50:82]

    assert identity("NFC", keys) == identity("NFD", keys)
    assert identity("NFC", keys) != identity("NFC", [f"{key}a" for key in keys])
