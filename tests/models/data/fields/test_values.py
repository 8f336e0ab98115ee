"""What each kind of field takes, in which form it is kept, and what it refuses."""

import uuid
from typing import Any

import pytest

from models.core.filters.grammar import ValueForm
from models.core.values import InvalidValueError
from models.data.fields.rules.fields import (
    COMPUTED_KINDS,
    STORED_KINDS,
    SYSTEM_KINDS,
    FieldKind,
    FieldSpec,
    Option,
)
from models.data.fields.rules.values import KIND_RULES, ResultKind, value_form

PERSON = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"
OPTIONS = tuple(
    Option(id=str(uuid.uuid4()), key=key, name=key.title(), color="gray", order=place)
    for place, key in enumerate(("low", "high"))
)

LONGEST_URL = f"https://example.org/{'a' * 2028}"
"""2,048 characters."""
TAKEN: list[tuple[FieldKind, Any, Any]] = [
    (FieldKind.TEXT, "", ""),
    (FieldKind.TEXT, "a\nb 🙂 'quoted' %_", "a\nb 🙂 'quoted' %_"),
    (FieldKind.LONG_TEXT, "x" * 20_000, "x" * 20_000),
    (FieldKind.RICH_TEXT, "# Heading", "# Heading"),
    (FieldKind.NUMBER, 0, 0),
    (FieldKind.NUMBER, -1.5, -1.5),
    (FieldKind.NUMBER, 1e99, 1e99),
    (FieldKind.CURRENCY, 9.99, 9.99),
    (FieldKind.PERCENT, 12, 12),
    (FieldKind.RATING, 10, 10),
    (FieldKind.RATING, 3.0, 3),
    (FieldKind.DURATION, 86_400_000, 86_400_000),
    (FieldKind.CHECKBOX, False, False),
    (FieldKind.DATE, "2024-02-29", "2024-02-29"),
    (FieldKind.DATE, "0001-01-01", "0001-01-01"),
    (FieldKind.DATETIME, "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.000Z"),
    (FieldKind.DATETIME, "2026-01-31T09:00+02:00", "2026-01-31T07:00:00.000Z"),
    (FieldKind.DATETIME, "0999-01-31T09:00:00.1239Z", "0999-01-31T09:00:00.123Z"),
    (FieldKind.SELECT, " LOW ", "low"),
    (FieldKind.MULTI_SELECT, ["High", "low", "high"], ["high", "low"]),
    (FieldKind.TIME, "09:30", "09:30"),
    (FieldKind.TIME, "09:30:00", "09:30"),
    (FieldKind.TIME, "23:59:59", "23:59:59"),
    (FieldKind.SELECT, "low", "low"),
    (FieldKind.STATUS, "high", "high"),
    (FieldKind.MULTI_SELECT, [], []),
    (FieldKind.MULTI_SELECT, ["high", "low", "high"], ["high", "low"]),
    (FieldKind.PERSON, [PERSON, PERSON], [PERSON]),
    (FieldKind.FILE, [], []),
    (FieldKind.FILE, [PERSON, PERSON], [PERSON]),
    (FieldKind.EMAIL, "ada@example.org", "ada@example.org"),
    (FieldKind.URL, "https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
    (FieldKind.URL, LONGEST_URL, LONGEST_URL),
    (FieldKind.PHONE, "+49 (30) 901-820", "+49 (30) 901-820"),
    (FieldKind.JSON, {"a": [1, None, {"b": "c"}]}, {"a": [1, None, {"b": "c"}]}),
    (
        FieldKind.LOCATION,
        {"lat": 52.5, "lng": 13, "label": "Berlin"},
        {"lat": 52.5, "lng": 13, "label": "Berlin"},
    ),
    (FieldKind.LOCATION, {"lat": 0, "lng": -180, "label": None}, {"lat": 0, "lng": -180}),
]

WRONG_TYPES: dict[str, Any] = {
    "text": "plain words",
    "number": 5,
    "true": True,
    "list": ["x"],
    "object": {"k": "v"},
    "nul": "a\x00b",
    "surrogate": "a\ud800b",
}

ACCEPTED: dict[FieldKind, set[str]] = {
    FieldKind.TEXT: {"text"},
    FieldKind.LONG_TEXT: {"text"},
    FieldKind.RICH_TEXT: {"text"},
    FieldKind.NUMBER: {"number"},
    FieldKind.CURRENCY: {"number"},
    FieldKind.PERCENT: {"number"},
    FieldKind.RATING: {"number"},
    FieldKind.DURATION: {"number"},
    FieldKind.CHECKBOX: {"true"},
    FieldKind.JSON: {"text", "number", "true", "list", "object"},
}

REFUSED: list[tuple[FieldKind, Any]] = [
    (FieldKind.TEXT, "x" * 10_001),
    (FieldKind.LONG_TEXT, "x" * 200_001),
    (FieldKind.NUMBER, float("nan")),
    (FieldKind.NUMBER, float("inf")),
    (FieldKind.NUMBER, 10**400),
    (FieldKind.NUMBER, "5"),
    (FieldKind.RATING, 11),
    (FieldKind.RATING, -1),
    (FieldKind.RATING, 2.5),
    (FieldKind.DURATION, -1),
    (FieldKind.DURATION, 2**53),
    (FieldKind.CHECKBOX, 1),
    (FieldKind.DATE, "2023-02-29"),
    (FieldKind.DATE, "20240101"),
    (FieldKind.DATE, "2024-01-01T00:00:00Z"),
    (FieldKind.DATE, "2024-01-01\n"),
    (FieldKind.DATE, "\u0662\u0660\u0662\u0664-01-01"),
    (FieldKind.DATETIME, "2024-01-01T00:00:00"),
    (FieldKind.DATETIME, "2024-01-01T24:30:00Z"),
    (FieldKind.DATETIME, "0001-01-01T00:00:00+14:00"),
    (FieldKind.DATETIME, "2024-01-01T00:00:00+99:99"),
    (FieldKind.DATETIME, 1_700_000_000),
    (FieldKind.TIME, "24:00"),
    (FieldKind.TIME, "9:30"),
    (FieldKind.SELECT, "lowest"),
    (FieldKind.MULTI_SELECT, "low"),
    (FieldKind.MULTI_SELECT, ["low", "none"]),
    (FieldKind.PERSON, PERSON),
    (FieldKind.PERSON, [PERSON.replace("-", "")]),
    (FieldKind.PERSON, [PERSON] * 101),
    (FieldKind.FILE, PERSON),
    (FieldKind.FILE, [PERSON.replace("-", "")]),
    (FieldKind.FILE, [{"fileId": PERSON}]),
    (FieldKind.FILE, [PERSON] * 101),
    (FieldKind.EMAIL, "ada@example"),
    (FieldKind.EMAIL, "ada@@example.org"),
    (FieldKind.EMAIL, f"{'a' * 250}@example.org"),
    (FieldKind.URL, "javascript:alert(1)"),
    (FieldKind.URL, "https://"),
    (FieldKind.URL, "http://[::1"),
    (FieldKind.URL, "https://a b.example"),
    (FieldKind.URL, f"https://example.org/{'a' * 2029}"),
    (FieldKind.PHONE, "call me"),
    (FieldKind.PHONE, "+"),
    (FieldKind.LOCATION, {"lat": 91, "lng": 0}),
    (FieldKind.LOCATION, {"lat": 0, "lng": 181}),
    (FieldKind.LOCATION, {"lat": 0}),
    (FieldKind.LOCATION, {"lat": 0, "lng": 0, "zoom": 3}),
    (FieldKind.LOCATION, {"lat": True, "lng": 0}),
    (FieldKind.JSON, {"a": float("nan")}),
    (FieldKind.JSON, {"a\x00": 1}),
]


def field(kind: FieldKind, **settings: Any) -> FieldSpec:
    return FieldSpec(
        id=uuid.uuid4(), key="f", label="F", kind=kind, options=OPTIONS, settings=settings
    )


def check(kind: FieldKind, value: Any, **settings: Any) -> Any:
    rule = KIND_RULES[kind].check
    assert rule is not None
    return rule(field(kind, **settings), value)


@pytest.mark.parametrize(("kind", "value", "kept"), TAKEN)
def test_kept_form(kind: FieldKind, value: Any, kept: Any) -> None:
    assert check(kind, value) == kept
    assert type(check(kind, value)) is type(kept)


@pytest.mark.parametrize("kind", sorted(STORED_KINDS))
@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_value_of_another_type_is_refused(kind: FieldKind, name: str) -> None:
    if name in ACCEPTED.get(kind, set()):
        check(kind, WRONG_TYPES[name])
    else:
        with pytest.raises(InvalidValueError):
            check(kind, WRONG_TYPES[name])


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_refused(kind: FieldKind, value: Any) -> None:
    with pytest.raises(InvalidValueError):
        check(kind, value)


def test_json_deeper_than_the_platform_takes_is_refused() -> None:
    value: Any = 1
    for _ in range(48):
        value = [value]
    assert check(FieldKind.JSON, value) == value
    with pytest.raises(InvalidValueError):
        check(FieldKind.JSON, [value])


@pytest.mark.parametrize(
    ("settings", "taken", "refused"),
    [
        ({"min": 0}, 0, -1),
        ({"max": 10}, 10, 10.5),
        ({"precision": 2}, 1.25, 1.255),
        ({"precision": 0}, 5.0, 5.1),
        ({"precision": 2}, 1e20, 1e-3),
    ],
)
def test_number_settings(settings: dict[str, Any], taken: float, refused: float) -> None:
    assert check(FieldKind.NUMBER, taken, **settings) == taken
    with pytest.raises(InvalidValueError):
        check(FieldKind.NUMBER, refused, **settings)


def test_a_file_field_may_bound_its_files() -> None:
    other = PERSON.replace("8", "9", 1)
    assert check(FieldKind.FILE, [PERSON], maxFiles=1) == [PERSON]
    with pytest.raises(InvalidValueError, match="at most 1 file"):
        check(FieldKind.FILE, [PERSON, other], maxFiles=1)


def test_every_kind_has_a_rule_and_one_place_for_its_value() -> None:
    assert len(FieldKind) == 33
    assert set(KIND_RULES) == set(FieldKind)
    elsewhere = {FieldKind.RELATION, FieldKind.BUTTON}
    places = [STORED_KINDS, COMPUTED_KINDS, SYSTEM_KINDS, elsewhere]
    assert sorted(kind for place in places for kind in place) == sorted(FieldKind)
    assert {kind for kind, rule in KIND_RULES.items() if rule.check is not None} == STORED_KINDS


@pytest.mark.parametrize("kind", [FieldKind.FORMULA, FieldKind.ROLLUP])
def test_a_derived_value_has_the_form_of_its_result(kind: FieldKind) -> None:
    forms = [value_form(field(kind, resultKind=result.value)) for result in ResultKind]
    assert forms == [
        ValueForm.TEXT,
        ValueForm.NUMBER,
        ValueForm.BOOLEAN,
        ValueForm.DAY,
        ValueForm.MOMENT,
        ValueForm.OPAQUE,
    ]
    assert value_form(field(kind)) is ValueForm.OPAQUE
