"""Which field a column suggests: only what all of its cells agree on, and nothing guessed."""

from datetime import date, datetime, time, timedelta
from typing import Any

import pytest

from models.data.fields.rules.kinds import FieldKind
from models.sources.tabular.rules.cells import Amount, Percent
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.formats import Conventions

K = FieldKind
PLAIN, COMMA = Conventions(), Conventions(decimal_separator=",")
DMY, MDY = Conventions(date_order="dmy"), Conventions(date_order="mdy")
NOON = datetime.combine(date(2026, 1, 31), time(12))

COLUMNS: list[tuple[list[Any], Conventions, FieldKind]] = [
    (["1", "2.5", "-3"], PLAIN, K.NUMBER),
    (["1", "2", "x"], PLAIN, K.TEXT),
    (["1", None, "3"], PLAIN, K.NUMBER),
    ([None, None], PLAIN, K.TEXT),
    (["00123", "00456"], PLAIN, K.TEXT),
    (["0", "0.5", "-0.5"], PLAIN, K.NUMBER),
    (["123456789012345", "1"], PLAIN, K.NUMBER),
    (["1234567890123456", "1"], PLAIN, K.TEXT),
    (["1e400", "1"], PLAIN, K.TEXT),
    (["NaN", "1"], PLAIN, K.TEXT),
    (["1,5", "2,5"], PLAIN, K.TEXT),
    (["1,5", "1.234,5"], COMMA, K.NUMBER),
    (["1,234.5", "12"], PLAIN, K.NUMBER),
    (["5%", "7.5%"], PLAIN, K.PERCENT),
    (["5%", "7"], PLAIN, K.TEXT),
    (["$5", "€7.50"], PLAIN, K.CURRENCY),
    (["7,50 €", "1.234,00 €"], COMMA, K.CURRENCY),
    (["true", "FALSE"], PLAIN, K.CHECKBOX),
    (["yes", "no"], PLAIN, K.CHECKBOX),
    (["1", "0"], PLAIN, K.NUMBER),
    (["20260131", "20260201"], PLAIN, K.NUMBER),
    (["2026-01-31", "2026-02-01"], PLAIN, K.DATE),
    (["2026-02-31", "2026-02-01"], PLAIN, K.TEXT),
    (["01/02/2026", "03/02/2026"], PLAIN, K.TEXT),
    (["31/01/2026", "30/01/2026"], PLAIN, K.TEXT),
    (["31/01/2026", "01/02/2026"], DMY, K.DATE),
    (["31/01/2026", "01/02/2026"], MDY, K.TEXT),
    (["01/31/2026", "01/02/2026"], MDY, K.DATE),
    (["31.01.2026", "1.2.2026"], PLAIN, K.DATE),
    (["2026-01-31T12:00:00Z", "2026-01-31T12:00:00+02:00"], PLAIN, K.DATETIME),
    (["2026-01-31 12:00", "2026-01-31 12:00:30"], PLAIN, K.DATETIME),
    (["2026-01-31T12:00:00Z", "12"], PLAIN, K.TEXT),
    (["09:30", "23:59"], PLAIN, K.TIME),
    (["09:30", "25:00"], PLAIN, K.TEXT),
    (["https://example.com", "http://example.org/a"], PLAIN, K.URL),
    (["a@example.com", "b@example.org"], PLAIN, K.EMAIL),
    ([1, 2.5], PLAIN, K.NUMBER),
    ([True, False], PLAIN, K.CHECKBOX),
    ([True, 1], PLAIN, K.TEXT),
    ([date(2026, 1, 31), NOON], PLAIN, K.DATETIME),
    ([date(2026, 1, 31), date(2026, 2, 1)], PLAIN, K.DATE),
    ([date(2026, 1, 31), "2026-02-01"], PLAIN, K.DATE),
    ([date(2026, 1, 31), 46_000], PLAIN, K.TEXT),
    ([time(9), time(10)], PLAIN, K.TIME),
    ([timedelta(hours=30)], PLAIN, K.DURATION),
    ([Percent(0.5), Percent(0.07)], PLAIN, K.PERCENT),
    ([Percent(0.5), 2], PLAIN, K.NUMBER),
    ([Amount(9.5)], PLAIN, K.CURRENCY),
    ([{"a": 1}, [1]], PLAIN, K.JSON),
]


@pytest.mark.parametrize(("cells", "conventions", "kind"), COLUMNS)
def test_a_column_suggests_what_all_its_cells_are(
    cells: list[Any], conventions: Conventions, kind: FieldKind
) -> None:
    [column] = profiles(["a"], [[cell] for cell in cells], conventions)
    assert column.kind is kind


def test_a_column_that_tells_rows_apart_is_not_the_title() -> None:
    headers, rows = ["id"], [["1147386954405658704"], ["1147386954405658705"]]
    found = profiles(headers, rows, PLAIN)
    assert [one.suggested_key for one in inferred_columns(headers, found, ["id"])] == ["id"]
    assert [one.suggested_key for one in inferred_columns(headers, found)] == ["title"]
