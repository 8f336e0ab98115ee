"""Numbers and times of texts, in each way that people write them."""

from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.fields.rules.value_conversion import LOST
from models.sources.tabular.rules.cells import Amount, Percent, cell
from models.sources.tabular.rules.conversion import converter
from models.sources.tabular.rules.formats import Conventions, offset_of
from models.sources.tabular.rules.rejections import reason

K = FieldKind
POINT, COMMA = Conventions(), Conventions(decimal_separator=",")
SPACES = (" ", "\u00a0", "\u2007", "\u2009", "\u202f")
APOSTROPHES = ("'", "\u2019")


def converted(text: Any, kind: FieldKind, conventions: Conventions = POINT, **settings: Any) -> Any:
    spec = FieldSpec(id=UUID(int=0), key="field", label="", kind=kind, settings=settings)
    return converter(spec, conventions)(text)


NUMBERS: list[tuple[Conventions, str, Any]] = [
    *((COMMA, f"10{group}237,65", 10237.65) for group in (*SPACES, *APOSTROPHES, ".")),
    *((COMMA, f"-1{group}234{group}567", -1234567) for group in (*SPACES, *APOSTROPHES, ".")),
    *((POINT, f"10{group}237.65", 10237.65) for group in (*SPACES, *APOSTROPHES, ",")),
    *((POINT, f"1{group}234", 1234) for group in (*SPACES, *APOSTROPHES, ",")),
    (POINT, "12,34,567.89", 1234567.89),
    (POINT, "-1,00,000", -100000),
    (POINT, "\u22125", -5),
    (POINT, "+5", 5),
    (COMMA, "1.234,50-", -1234.5),
    (COMMA, "1.234,50\u2212", -1234.5),
    (POINT, "(1,234.50)", -1234.5),
    (POINT, "( 5 )", -5),
    (COMMA, ",5", 0.5),
    (COMMA, "1,5E+3", 1500),
    (COMMA, "1.5", 1.5),
    (POINT, "1E5", 100000),
    *(
        (conventions, text, LOST)
        for conventions, text in [
            (POINT, "1,23,4"),
            (POINT, "1,2345"),
            (POINT, "1 23"),
            (POINT, "1,234 567"),
            (POINT, "1'234,567"),
            (POINT, "1234 567"),
            (COMMA, "1.23,4"),
            (COMMA, "1,5,6"),
            (COMMA, "1 234.567"),
            (POINT, "--5"),
            (POINT, "(-5)"),
            (POINT, "(5"),
            (POINT, "5)"),
            (POINT, "-5-"),
            (POINT, "5 EUR"),
            (POINT, "$5"),
            (POINT, "5%"),
            (POINT, "12:30"),
            (POINT, "5 6"),
        ]
    ),
]


@pytest.mark.parametrize(("conventions", "text", "expected"), NUMBERS)
def test_a_number_is_read_by_its_groups_and_its_sign(
    conventions: Conventions, text: str, expected: Any
) -> None:
    assert converted(text, K.NUMBER, conventions) == expected


AMOUNTS: list[tuple[Conventions, str, Any]] = [
    (COMMA, "2842,61 EUR", 2842.61),
    (COMMA, "€ 1.234,50", 1234.5),
    (COMMA, "1.234,50\u00a0€", 1234.5),
    (COMMA, "-1.234,50 €", -1234.5),
    (COMMA, "€ -1.234,50", -1234.5),
    (COMMA, "-€ 1.234,50", -1234.5),
    (COMMA, "1\u202f234,50 kr", 1234.5),
    (COMMA, "1 234,50 zł", 1234.5),
    (COMMA, "R$ 1.234,50", 1234.5),
    (POINT, "$1,234.50", 1234.5),
    (POINT, "-$1,234.50", -1234.5),
    (POINT, "($1,234.50)", -1234.5),
    (POINT, "$(1,234.50)", -1234.5),
    (POINT, "US$5", 5),
    (POINT, "$5 USD", 5),
    (POINT, "CHF 1\u2019234.50", 1234.5),
    (POINT, "USD1234.5", 1234.5),
    (POINT, "₹12,34,567.89", 1234567.89),
    (POINT, "Rs.500", 500),
    (POINT, "5", 5),
    (POINT, "5 PCS", LOST),
    (POINT, "$ -", 0),
    (POINT, "$-", 0),
    (COMMA, "-\u00a0€", 0),
    (POINT, "- EUR", 0),
    (POINT, "-", LOST),
    (COMMA, "12,- €", 12),
    (COMMA, "-1.300,-- €", -1300),
    (POINT, "CHF 12.\u2014", 12),
    (POINT, "12.-5", LOST),
    (COMMA, "12.-", LOST),
    (POINT, "5 eur", LOST),
    (POINT, "5 %", LOST),
    (POINT, "EUR", LOST),
]


@pytest.mark.parametrize(("conventions", "text", "expected"), AMOUNTS)
def test_an_amount_is_read_with_its_currency(
    conventions: Conventions, text: str, expected: Any
) -> None:
    assert converted(text, K.CURRENCY, conventions) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9:30", "09:30"),
        ("09:30", "09:30"),
        ("9:30:15", "09:30:15"),
        ("9:30 AM", "09:30"),
        ("12:05am", "00:05"),
        ("12:05 p.m.", "12:05"),
        ("1:05:30 p. m.", "13:05:30"),
        ("24:00", LOST),
        ("0:30 AM", LOST),
        ("13:00 PM", LOST),
        ("9:60", LOST),
        ("9", LOST),
    ],
)
def test_a_time_goes_by_twelve_or_twenty_four_hours(text: str, expected: Any) -> None:
    assert converted(text, K.TIME) == expected


def test_an_amount_of_another_currency_is_lost() -> None:
    assert converted("5 EUR", K.CURRENCY, currencyCode="EUR") == 5
    assert converted("5 USD", K.CURRENCY, currencyCode="EUR") is LOST


CURRENCIES = [
    ("5 €", "EUR", True),
    ("$5", "USD", True),
    ("$5", "CAD", True),
    ("US$5", "USD", True),
    ("kr 5", "NOK", True),
    ("5 Fr.", "CHF", True),
    ("¥5", "JPY", True),
    ("5", "EUR", True),
    ("֏5", "AMD", True),
    ("$5", "EUR", False),
    ("£5", "EUR", False),
    ("$5 USD", "CAD", False),
    ("US$5", "CAD", False),
    ("¥5", "USD", False),
    ("5 kr", "EUR", False),
    ("5 zł", "CZK", False),
]


@pytest.mark.parametrize(("text", "code", "fits"), CURRENCIES)
def test_a_sign_of_another_currency_is_lost(text: str, code: str, fits: bool) -> None:
    assert converted(text, K.CURRENCY, currencyCode=code) == (5 if fits else LOST)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (Percent(0.256), "25.6%"),
        (Percent(5), "500%"),
        (Percent(0.07), "7%"),
        (Amount(1234.5, "EUR"), "1234.5 EUR"),
        (Amount(5), "5"),
    ],
)
def test_a_text_says_what_the_file_shows(cell: Percent | Amount, expected: str) -> None:
    assert converted(cell, K.TEXT) == expected


def test_an_amount_fits_the_field_of_its_currency() -> None:
    field = FieldSpec(
        id=UUID(int=0), key="a", label="", kind=K.CURRENCY, settings={"currencyCode": "EUR"}
    )
    assert reason(field, POINT, "$5") == "An amount of another currency than EUR."
    assert reason(field, POINT, "five") == "Not an amount."
    cells = [Amount(5, "EUR"), Amount(5, "USD"), Amount(5)]
    assert [*map(converter(field, POINT), cells)] == [5, LOST, 5]


@given(
    number=st.decimals(-(10**9), 10**9, places=2).map(float),
    decimal=st.sampled_from([".", ","]),
    space=st.sampled_from([*SPACES, *APOSTROPHES, ".", ","]),
    minus=st.sampled_from(["-{}", "\u2212{}", "({})", "{}-"]),
    unit=st.sampled_from(["{}", "{} EUR", "€{}", "€ {}", "{}\u00a0$", "CHF {}"]),
    outside=st.booleans(),
)
def test_a_number_that_is_written_is_read(
    number: float,
    decimal: Literal[".", ","],
    space: str,
    minus: str,
    unit: str,
    outside: bool,
) -> None:
    if space == decimal:
        return
    digits = f"{abs(number):,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", space)
    shown = minus if number < 0 else "{}"
    text = shown.format(unit.format(digits)) if outside else unit.format(shown.format(digits))
    conventions = Conventions(decimal_separator=decimal)
    assert converted(text, K.CURRENCY, conventions) == number


MOMENTS: list[tuple[str, str]] = [
    ("March 3, 2026 9:00 AM (GMT+1)", "2026-03-03T08:00"),
    ("March 3, 2026 9:00 AM (GMT-5)", "2026-03-03T14:00"),
    ("March 3, 2026 9:00 AM (GMT\u22125)", "2026-03-03T14:00"),
    ("March 3, 2026 9:00 AM (GMT+5:30)", "2026-03-03T03:30"),
    ("March 3, 2026 9:00\u202fAM (UTC)", "2026-03-03T09:00"),
    ("March 3, 2026 12:00 AM (CET)", "2026-03-02T23:00"),
    ("March 3, 2026 12:00 PM (CET)", "2026-03-03T11:00"),
    ("March 3, 2026 1:05 AM", "2026-03-03T01:05"),
    ("March 3, 2026 11:59 PM", "2026-03-03T23:59"),
    ("Mar 3, 2026, 9:00 p.m. EST", "2026-03-04T02:00"),
    ("3 March 2026 09:00 (CET)", "2026-03-03T08:00"),
    ("2026/03/03 9:00 AM (PST)", "2026-03-03T17:00"),
    ("03.03.2026 09:00 MEZ", "2026-03-03T08:00"),
    ("2026-03-03 09:00 Z", "2026-03-03T09:00"),
    ("2026-03-03T09:00+01:00", "2026-03-03T08:00"),
    ("2026-03-03 09:00:00 +0100", "2026-03-03T08:00"),
    ("2026-03-03 09:00+01", "2026-03-03T08:00"),
    ("2026-03-03 09:00:00.123 UTC", "2026-03-03T09:00:00.123"),
    ("2026-07-03 09:00 Europe/Berlin", "2026-07-03T07:00"),
    ("2026-07-03 09:00 [Europe/Berlin]", "2026-07-03T07:00"),
    ("2026-07-03 09:00 W. Europe Standard Time", "2026-07-03T07:00"),
    ("2026-07-03 09:00 (Pacific Daylight Time)", "2026-07-03T16:00"),
    ("Tuesday, July 7, 2026 9:00 AM (UTC+01:00) Amsterdam, Berlin, Bern", "2026-07-07T07:00"),
    ("Tue, 7 Jul 2026 9:00 AM (UTC-08:00) Pacific Time (US & Canada)", "2026-07-07T16:00"),
    ("Tue, 03 Mar 2026 09:00:00 +0100 (CET)", "2026-03-03T08:00"),
    ("Tue Mar 03 2026 09:00:00 GMT+0100 (Central European Standard Time)", "2026-03-03T08:00"),
    ("March 3, 2026 9:00 AM", "2026-03-03T09:00"),
    ("2026-03-03 9:05", "2026-03-03T09:05"),
    ("2026-03-03 09:00:00.5", "2026-03-03T09:00:00.500"),
    ("March 3rd, 2026", "2026-03-03T00:00"),
    ("3-Mar-2026", "2026-03-03T00:00"),
]


@pytest.mark.parametrize(("text", "expected"), MOMENTS)
def test_a_time_is_meant_in_the_zone_behind_it(text: str, expected: str) -> None:
    moment = datetime.fromisoformat(f"{expected}+00:00")
    expected = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert converted(text, K.DATETIME) == expected


@pytest.mark.parametrize(
    "text",
    [
        "March 3, 2026 9:00 AM (XYZ)",
        "March 3, 2026 9:00 AM (IST)",
        "March 3, 2026 9:00 AM (GMT+25)",
        "March 3, 2026 9:00 AM (UTC+05:00) Berlin",
        "March 3, 2026 9:00 AM → 10:00 AM",
        "March 3, 2026 (XYZ)",
        "March 3, 2026 13:00 PM",
        "March 3, 2026 0:30 AM",
        "2026-03-03 25:00",
        "2026-02-31 09:00 UTC",
        "3/4/2026 9:00 AM (GMT+1)",
        "Marches 3, 2026",
        "May 2026",
    ],
)
def test_an_invalid_time_is_lost(text: str) -> None:
    assert converted(text, K.DATETIME) is LOST
    assert converted(text, K.TEXT) == text


@given(minutes=st.integers(-14 * 60, 14 * 60), place=st.sampled_from(["({})", "{}", "GMT{}"]))
def test_every_offset_is_known(minutes: int, place: str) -> None:
    hours, rest = divmod(abs(minutes), 60)
    offset = f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"
    noon = datetime(2026, 3, 3, 12)  # noqa: DTZ001  # the time that a zone is asked about
    assert offset_of(place.format(offset), noon) == timedelta(minutes=minutes)


def test_a_reader_finds_cells_in_one_form() -> None:
    assert [cell([]), cell([1]), cell({"a": 1})] == [None, [1], {"a": 1}]


def test_a_day_in_another_order_says_which() -> None:
    spec = FieldSpec(id=UUID(int=0), key="k", label="K", kind=FieldKind.DATE)
    order = Conventions(date_order="ymd")
    sentence = "Not in the date order: it reads as day, month, year."
    assert reason(spec, order, "01.02.2026") == sentence
