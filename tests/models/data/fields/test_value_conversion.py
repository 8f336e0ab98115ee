"""What values become in another kind."""

import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.core.values import InvalidValueError
from models.data.databases.rules import Converter
from models.data.fields.rules.fields import STORED_KINDS, FieldKind, FieldSpec, Option
from models.data.fields.rules.value_conversion import (
    LOST,
    Lost,
    convert_value,
    convertible,
    option_names,
    rounded,
)
from models.data.fields.rules.values import KIND_RULES

K = FieldKind
OPTIONS = tuple(
    Option(id=str(uuid.uuid4()), key=key, name=name, color="gray", order=place)
    for place, (key, name) in enumerate([("low", "Low"), ("high", "High up"), ("seven", "7")])
)


def field(kind: FieldKind, **settings: Any) -> FieldSpec:
    options = OPTIONS if kind in {K.SELECT, K.MULTI_SELECT, K.STATUS} else ()
    return FieldSpec(
        id=uuid.uuid4(), key="f", label="F", kind=kind, options=options, settings=settings
    )


BERLIN = {"timezone": "Europe/Berlin"}

PAIRS: list[tuple[FieldKind, dict[str, Any], FieldKind, dict[str, Any], Any, Any]] = [
    (K.NUMBER, {}, K.TEXT, {}, 1e21, "1000000000000000000000"),
    (K.NUMBER, {}, K.TEXT, {}, 2.50, "2.5"),
    (K.DURATION, {}, K.TEXT, {}, 5_400_000, "1:30:00"),
    (K.DURATION, {}, K.TEXT, {}, 61_001, "0:01:01.001"),
    (K.CHECKBOX, {}, K.TEXT, {}, False, "false"),
    (K.MULTI_SELECT, {}, K.TEXT, {}, ["high", "low"], "High up, Low"),
    (K.MULTI_SELECT, {}, K.TEXT, {}, ["low", "gone"], LOST),
    (K.MULTI_SELECT, {}, K.TEXT, {}, [], ""),
    (K.LOCATION, {}, K.TEXT, {}, {"lat": 52.5, "lng": 13}, "52.5, 13"),
    (K.LOCATION, {}, K.TEXT, {}, {"lat": 1, "lng": 2, "label": "Here"}, "Here"),
    (K.JSON, {}, K.TEXT, {}, {"a": ["ü"]}, '{"a": ["ü"]}'),
    (K.LONG_TEXT, {}, K.TEXT, {}, "x" * 10_001, LOST),
    (K.TEXT, {}, K.NUMBER, {}, " 12.50 ", 12.5),
    (K.TEXT, {}, K.NUMBER, {}, "-3e2", -300),
    (K.TEXT, {}, K.NUMBER, {}, "1,234.5", 1234.5),
    (K.TEXT, {}, K.NUMBER, {}, "1,234,567", 1_234_567),
    (K.TEXT, {}, K.NUMBER, {}, "1,234", LOST),
    (K.TEXT, {}, K.NUMBER, {}, "1.234,5", LOST),
    (K.TEXT, {}, K.NUMBER, {}, "12 apples", LOST),
    (K.TEXT, {}, K.NUMBER, {}, "nan", LOST),
    (K.TEXT, {}, K.NUMBER, {}, "\u0661\u0662", LOST),
    (K.TEXT, {}, K.NUMBER, {"max": 10}, "11", LOST),
    (K.TEXT, {}, K.NUMBER, {}, "1e999", LOST),
    (K.TEXT, {}, K.CURRENCY, {"precision": 2}, "€ 9.995", 10),
    (K.TEXT, {}, K.PERCENT, {}, "12.5 %", 12.5),
    (K.TEXT, {}, K.NUMBER, {}, "12.5 %", LOST),
    (K.NUMBER, {}, K.CURRENCY, {"precision": 2}, 1.255, 1.26),
    (K.TEXT, {}, K.NUMBER, {"precision": 0}, "999999999999999.4", 999_999_999_999_999),
    (K.CHECKBOX, {}, K.NUMBER, {}, True, 1),
    (K.SELECT, {}, K.NUMBER, {}, "seven", 7),
    (K.SELECT, {}, K.NUMBER, {}, "low", LOST),
    (K.NUMBER, {}, K.RATING, {}, 7, 7),
    (K.NUMBER, {}, K.RATING, {}, 7.5, LOST),
    (K.NUMBER, {}, K.DURATION, {}, -1, LOST),
    (K.TEXT, {}, K.DURATION, {}, "1:30", 5_400_000),
    (K.TEXT, {}, K.DURATION, {}, "0:00:01.250", 1_250),
    (K.TEXT, {}, K.CHECKBOX, {}, " Yes", True),
    (K.TEXT, {}, K.CHECKBOX, {}, "maybe", LOST),
    (K.NUMBER, {}, K.CHECKBOX, {}, 0.0, False),
    (K.NUMBER, {}, K.CHECKBOX, {}, 2, LOST),
    (K.TEXT, {}, K.DATE, {}, "2026-01-31", "2026-01-31"),
    (K.TEXT, {}, K.DATE, {}, "31.1.2026", "2026-01-31"),
    (K.TEXT, {}, K.DATE, {}, "2026/1/31", "2026-01-31"),
    (K.TEXT, {}, K.DATE, {}, "01/02/2026", LOST),
    (K.TEXT, {}, K.DATE, {}, "31.2.2026", LOST),
    (K.DATETIME, BERLIN, K.DATE, {}, "2026-01-31T23:30:00.000Z", "2026-02-01"),
    (K.DATETIME, BERLIN, K.TIME, {}, "2026-01-31T23:30:00.000Z", "00:30"),
    (K.DATETIME, BERLIN, K.DATE, {}, "9999-12-31T23:30:00.000Z", LOST),
    (K.TEXT, {}, K.DATE, {}, "2026-01-31T23:30:00Z", "2026-01-31"),
    (K.TEXT, {}, K.DATE, {}, "2026-01-31T23:30", "2026-01-31"),
    (K.DATE, {}, K.DATETIME, BERLIN, "2026-07-01", "2026-06-30T22:00:00.000Z"),
    (K.DATE, {}, K.DATETIME, BERLIN, "0001-01-01", LOST),
    (K.TEXT, {}, K.DATETIME, BERLIN, "2026-07-01 12:00", "2026-07-01T10:00:00.000Z"),
    (K.TEXT, {}, K.DATETIME, BERLIN, "2026-07-01T12:00:00+05:00", "2026-07-01T07:00:00.000Z"),
    (K.TEXT, {}, K.TIME, {}, "9:30", "09:30"),
    (K.TEXT, {}, K.TIME, {}, "9", LOST),
    (K.TEXT, {}, K.SELECT, {}, " high UP ", "high"),
    (K.TEXT, {}, K.SELECT, {}, "else", LOST),
    (K.NUMBER, {}, K.SELECT, {}, 7.0, "seven"),
    (K.SELECT, {}, K.STATUS, {}, "low", "low"),
    (K.TEXT, {}, K.DATE, {}, "2026-03-01T00:30:00+02:00", "2026-03-01"),
    (K.TEXT, {}, K.DATE, {}, "2026-02-28T20:00:00-05:00", "2026-02-28"),
    (K.TEXT, {}, K.DATE, {}, "2026-02-28T23:30:00Z", "2026-02-28"),
    (K.TEXT, {}, K.DATE, BERLIN, "2026-02-28T23:30:00Z", "2026-03-01"),
    (K.TEXT, {}, K.DATE, BERLIN, "2026-03-01T00:30:00+02:00", "2026-02-28"),
    (K.TEXT, {}, K.DATE, BERLIN, "2026-03-01T00:00:00", "2026-03-01"),
    (K.TEXT, {}, K.DATE, {}, "2026-03-01 09:15", "2026-03-01"),
    (K.TEXT, {}, K.DATE, {}, "2026-03-01T25:00:00", LOST),
    (K.TEXT, {}, K.DATE, {}, "2026-02-30T10:00:00Z", LOST),
    (K.TEXT, {}, K.DATE, BERLIN, "9999-12-31T23:59:00Z", LOST),
    (K.DATETIME, {}, K.DATE, {}, "2026-02-28T23:30:00.000Z", "2026-02-28"),
    (K.DATETIME, {}, K.DATE, BERLIN, "2026-02-28T23:30:00.000Z", "2026-03-01"),
    (K.SELECT, {}, K.MULTI_SELECT, {}, "low", ["low"]),
    (K.MULTI_SELECT, {}, K.SELECT, {}, ["low"], "low"),
    (K.MULTI_SELECT, {}, K.SELECT, {}, ["low", "high"], LOST),
    (K.TEXT, {}, K.MULTI_SELECT, {}, "Low; 7,low", ["low", "seven"]),
    (K.TEXT, {}, K.MULTI_SELECT, {}, "Low; else", LOST),
    (K.TEXT, {}, K.EMAIL, {}, " ada@example.org ", "ada@example.org"),
    (K.TEXT, {}, K.URL, {}, "javascript:alert(1)", LOST),
    (K.TEXT, {}, K.JSON, {}, "[1]", [1]),
    (K.TEXT, {}, K.JSON, {}, "null", "null"),
    (K.TEXT, {}, K.JSON, {}, "NaN", "NaN"),
    (K.TEXT, {}, K.JSON, {}, "[1", "[1"),
    (K.TEXT, {}, K.LOCATION, {}, "52.5, 13", {"lat": 52.5, "lng": 13.0}),
    (K.TEXT, {}, K.LOCATION, {}, "Berlin", LOST),
    (K.JSON, {}, K.LOCATION, {}, {"lat": 1, "lng": 2}, {"lat": 1, "lng": 2}),
    (K.JSON, {}, K.LOCATION, {}, {"lat": 91, "lng": 2}, LOST),
]


@pytest.mark.parametrize(("kind", "settings", "to_kind", "to_settings", "value", "becomes"), PAIRS)
def test_a_value_in_another_kind(
    kind: FieldKind,
    settings: dict[str, Any],
    to_kind: FieldKind,
    to_settings: dict[str, Any],
    value: Any,
    becomes: Any,
) -> None:
    assert convertible(kind, to_kind)
    found = convert_value(field(kind, **settings), field(to_kind, **to_settings), value)
    assert found == becomes
    assert type(found) is type(becomes)


@pytest.mark.parametrize("kind", list(FieldKind))
def test_a_computed_kind_is_converted_neither_way(kind: FieldKind) -> None:
    if kind not in STORED_KINDS:
        assert not any(convertible(kind, to) or convertible(to, kind) for to in FieldKind)
    assert not convertible(kind, kind)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
TELLING = st.sampled_from(
    [
        *(value for *_, value, _ in PAIRS),
        *(becomes for *_, becomes in PAIRS if becomes is not LOST),
        "",
        "9999-12-31",
        "0001-01-01T00:00:00.000Z",
        "99999:59:59",
        [],
        ["gone"],
    ]
)
PAIR = st.sampled_from([(a, b) for a in FieldKind for b in FieldKind if convertible(a, b)])
SETTINGS = st.sampled_from([{}, BERLIN, {"precision": 0}, {"precision": 2, "min": 0, "max": 99}])


@pytest.mark.long
@given(PAIR, SETTINGS, SETTINGS, TELLING | JSON)
def test_a_converted_value_is_valid_in_the_new_kind(
    kinds: tuple[FieldKind, FieldKind], before: Any, after: Any, value: Any
) -> None:
    from_spec, to_spec = field(kinds[0], **before), field(kinds[1], **after)
    found = convert_value(from_spec, to_spec, value)
    check = KIND_RULES[to_spec.kind].check
    assert check is not None
    assert found is LOST or check(to_spec, found) == found


@given(st.sampled_from([K.NUMBER, K.DATE, K.DATETIME, K.CHECKBOX, K.TIME, K.DURATION]), TELLING)
def test_a_value_written_as_text_reads_back_as_itself(kind: FieldKind, value: Any) -> None:
    spec, text = field(kind), field(K.TEXT)
    check = KIND_RULES[kind].check
    assert check is not None
    try:
        stored = check(spec, value)
    except InvalidValueError:
        return
    written = convert_value(spec, text, stored)
    assert not isinstance(written, Lost)
    assert convert_value(text, spec, written) == stored


def converter(to_kind: FieldKind, *, grows: bool = True, default: str | None = None) -> Converter:
    to_spec = FieldSpec(id=uuid.uuid4(), key="f", label="F", kind=to_kind)
    from_spec = FieldSpec(id=uuid.uuid4(), key="f", label="F", kind=K.TEXT, default=default)
    return Converter(from_spec, to_spec, uuid.uuid4, grows=grows)


def test_texts_become_options_once_each() -> None:
    made = converter(K.SELECT, default="B b")
    assert made.convert(["A", "b B", " a ", "A!", "x" * 101, ""]) == [
        "a", "b_b", "a", "a_2", None, None,
    ]  # fmt: skip
    assert [option.name for option in made.to_spec.options] == ["A", "b B", "A!"]
    assert made.with_default().default == "b_b"


def test_a_text_may_name_several_options() -> None:
    made = converter(K.MULTI_SELECT)
    assert made.convert(["Red, Blue", "blue\n\nGreen"]) == [["red", "blue"], ["blue", "green"]]


def test_there_are_at_most_as_many_options_as_a_field_may_have() -> None:
    made = converter(K.SELECT)
    values = made.convert(f"n{number}" for number in range(1_001))
    assert values[-2:] == ["n999", None]
    assert len(made.to_spec.options) == 1_000


def test_options_that_are_given_are_all_there_are() -> None:
    assert converter(K.SELECT, grows=False).convert(["A"]) == [None]
    assert converter(K.STATUS).convert(["A"]) == [None]


def test_an_option_that_is_no_more_names_nothing() -> None:
    assert option_names(field(K.SELECT), field(K.TEXT), "gone") == []


@given(st.from_regex(r"-?[0-9]{1,9}([.][0-9]{1,8})?", fullmatch=True))
def test_a_written_number_is_the_nearest_that_can_be_stored(written: str) -> None:
    exact = Decimal(written)
    expected = int(exact) if exact == exact.to_integral_value() else float(exact)
    found = convert_value(field(K.TEXT), field(K.NUMBER), written)
    assert (type(found), found) == (type(expected), expected)


@given(
    st.floats(allow_nan=False, min_value=-1e100, max_value=1e100) | st.integers(-(10**99), 10**99)
)
def test_a_number_stays_the_number_it_is(number: float) -> None:
    found = convert_value(field(K.NUMBER), field(K.CURRENCY), number)
    assert found == number
    assert isinstance(found, int) == (
        isinstance(number, int) or (abs(number) < 2**53 and number == int(number))
    )


@given(st.sampled_from([K.NUMBER, K.CURRENCY, K.PERCENT]), st.integers(-(10**40), 10**40))
def test_a_whole_number_becomes_text_and_back_with_its_digits_or_is_lost(
    kind: FieldKind, number: int
) -> None:
    written = convert_value(field(kind), field(K.TEXT), number)
    assert written == str(number)
    assert convert_value(field(K.TEXT), field(kind), str(written)) in (number, LOST)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("9007199254740993", LOST),
        ("1147386954405658704", LOST),
        ("1,147,386,954,405,658,704.0", LOST),
        ("3.141592653589793238", LOST),
        ("1e400", LOST),
        ("1e-400", LOST),
        ("9007199254740991", 9007199254740991),
        ("0.10000000000000000000", 0.1),
        ("0.30000000000000004", 0.30000000000000004),
    ],
)
def test_a_text_of_more_digits_than_a_number_holds_is_lost(written: str, expected: Any) -> None:
    assert convert_value(field(K.TEXT), field(K.NUMBER), written) == expected


def test_a_text_of_json_with_more_digits_than_a_number_holds_stays_text() -> None:
    assert convert_value(field(K.TEXT), field(K.JSON), "[3.141592653589793238]") == (
        "[3.141592653589793238]"
    )
    assert convert_value(field(K.TEXT), field(K.JSON), "[1147386954405658705]") == [
        1147386954405658705
    ]


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [(1.005, 2, "1.01"), (2.5, 0, "3"), (-1.005, 2, "-1.01"), (2**60 + 1, 1, f"{2**60 + 1}.0")],
)
def test_shown_decimals_are_rounded_as_people_do(value: float, decimals: int, shown: str) -> None:
    assert rounded(value, decimals) == shown
