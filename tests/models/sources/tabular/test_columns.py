"""Which field a column suggests: only what all of its cells agree on, and nothing guessed."""

from datetime import date, datetime, time, timedelta
from typing import Any

import pytest

from models.data.fields.rules.fields import FieldKind
from models.sources.tabular.rules.cells import Amount, Percent
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.rejections import written

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
    (["10 237,65", "5"], COMMA, K.NUMBER),
    (["10\u202f237,65", "1\u00a0234"], COMMA, K.NUMBER),
    (["1'234.50", "12\u2019345.00"], PLAIN, K.NUMBER),
    (["12,34,567.89", "1,00,000"], PLAIN, K.NUMBER),
    (["1,23,4", "5"], PLAIN, K.TEXT),
    (["\u22125", "-6"], PLAIN, K.NUMBER),
    (["(1,234.50)", "20"], PLAIN, K.NUMBER),
    (["1.234,50-", "20,00"], COMMA, K.NUMBER),
    (["(1)", "(2)"], PLAIN, K.TEXT),
    (["(500)", "1,200"], PLAIN, K.NUMBER),
    (["12-", "14-"], PLAIN, K.TEXT),
    (["601 234 567", "602 345 678"], PLAIN, K.TEXT),
    (["+49 151 234 567", "+49 152 345 678"], PLAIN, K.TEXT),
    (["+4915123456789", "+15551234567"], PLAIN, K.TEXT),
    (["+1234567", "-5.5"], PLAIN, K.NUMBER),
    (["+5", "+12"], PLAIN, K.NUMBER),
    (["100 000", "1 200 000"], PLAIN, K.NUMBER),
    (["1E5", "12E4"], PLAIN, K.TEXT),
    (["1E5", "100"], PLAIN, K.TEXT),
    (["1.5E+05", "2e-3"], PLAIN, K.NUMBER),
    (["2842,61 EUR", "5 EUR"], COMMA, K.CURRENCY),
    (["USD 5", "USD 7.50"], PLAIN, K.CURRENCY),
    (["($5.00)", "$7"], PLAIN, K.CURRENCY),
    (["TOP 10", "TOP 50"], PLAIN, K.TEXT),
    (["5 PCS", "7 PCS"], PLAIN, K.TEXT),
    (["5%", "7.5%"], PLAIN, K.PERCENT),
    (["-5,5 %", "7\u202f%"], COMMA, K.PERCENT),
    (["5%", "7"], PLAIN, K.TEXT),
    (["$5", "€7.50"], PLAIN, K.TEXT),
    (["5 EUR", "7 USD"], PLAIN, K.TEXT),
    (["5 €", "7.50 EUR"], PLAIN, K.CURRENCY),
    (["$5 USD", "$7"], PLAIN, K.CURRENCY),
    (["$5", "A$7"], PLAIN, K.TEXT),
    (["$5 USD", "$7 CAD"], PLAIN, K.TEXT),
    (["kr. 5", "kr 7"], PLAIN, K.CURRENCY),
    (["1.234,50 €", "£ 7,20"], COMMA, K.TEXT),
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
    (["March 3, 2026 9:00 AM (GMT+1)", "March 3, 2026"], PLAIN, K.DATETIME),
    (["March 3, 2026 9:00 AM (GMT+1)", "March 3, 2026 9:00 AM (XYZ)"], PLAIN, K.TEXT),
    (["3/3/2026 9:00am CET", "3/13/2026 9:00pm"], MDY, K.DATETIME),
    (["March 3, 2026", "April 4, 2026"], PLAIN, K.DATE),
    (["09:30", "23:59"], PLAIN, K.TIME),
    (["09:30", "25:00"], PLAIN, K.TEXT),
    (["9:30", "17:45"], PLAIN, K.TIME),
    (["9:30", "25:30"], PLAIN, K.TEXT),
    (["9:30 AM", "12:05 p.m.", "12:00:10am"], PLAIN, K.TIME),
    (["9:30 AM", "13:05 PM"], PLAIN, K.TEXT),
    (["0:45:10", "1:30:00"], PLAIN, K.DURATION),
    (["09:45:10", "11:30:00"], PLAIN, K.TIME),
    (["3 gennaio 2026", "1 giu 2026"], PLAIN, K.DATE),
    (["3 maart 2026", "1 mei 2026"], PLAIN, K.DATE),
    (["3 de fevereiro de 2026", "1º de março de 2026"], PLAIN, K.DATE),
    (["1er août 2026", "3 mars 2026"], PLAIN, K.DATE),
    (["3. maj 2026", "4. desember 2026"], PLAIN, K.DATE),
    (["$ -", "$ (5.00)"], PLAIN, K.CURRENCY),
    (["-", "5"], PLAIN, K.TEXT),
    (["->", "$5"], PLAIN, K.TEXT),
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
    ([timedelta(hours=30), time(9)], PLAIN, K.DURATION),
    ([Percent(0.5), Percent(0.07)], PLAIN, K.PERCENT),
    ([Percent(0.5), 2], PLAIN, K.NUMBER),
    ([Amount(9.5)], PLAIN, K.CURRENCY),
    ([Amount(9.5, "EUR"), Amount(5, "EUR")], PLAIN, K.CURRENCY),
    ([Amount(9.5, "EUR"), "5 €"], PLAIN, K.CURRENCY),
    ([Amount(9.5, "EUR"), Amount(5, "USD")], PLAIN, K.TEXT),
    ([{"a": 1}, [1]], PLAIN, K.JSON),
]


@pytest.mark.parametrize(("cells", "conventions", "kind"), COLUMNS)
def test_a_column_suggests_what_all_its_cells_are(
    cells: list[Any], conventions: Conventions, kind: FieldKind
) -> None:
    [column] = profiles(["a"], [[cell] for cell in cells], conventions)
    assert column.kind is kind


def test_long_headers_that_differ_at_their_end_have_labels_that_differ() -> None:
    headers = ["x" * 250, "x" * 250 + " (2)", "x" * 249 + "y", "short"]
    columns = inferred_columns(headers, profiles(headers, [["a", "b", "c", "d"]], PLAIN))
    labels = [column.label for column in columns]
    assert labels == ["x" * 200, "x" * 194 + " (2)", "x" * 194 + " (3)", "short"]


def test_a_column_that_tells_rows_apart_is_not_the_title() -> None:
    headers, rows = ["id"], [["1147386954405658704"], ["1147386954405658705"]]
    found = profiles(headers, rows, PLAIN)
    assert [one.suggested_key for one in inferred_columns(headers, found, ["id"])] == ["id"]
    assert [one.suggested_key for one in inferred_columns(headers, found)] == ["title"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("x" * 1_000, "x" * 1_000),
        ("x" * 1_001, "x" * 999 + "…"),
        ("a\x00b\ud800", "a\ufffdb?"),
        (date(2026, 1, 31), "2026-01-31"),
        ({"a": [1]}, '{"a":[1]}'),
        (True, "true"),
    ],
)
def test_a_rejected_value_is_kept_up_to_1_000_characters(given: Any, kept: str) -> None:
    assert written(given) == kept
