"""Columns converted at once give what their cells give one by one."""

import math
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.sources.tabular.rules.cells import Percent, cell
from models.sources.tabular.rules.conversion import column_converter, converter
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
