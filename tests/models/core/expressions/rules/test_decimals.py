"""Arithmetic of expressions is that of the decimals people write, wherever a double can say so."""

import operator as operators
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import saved_expression

SUMS: list[tuple[str, Any]] = [
    ("0.1 + 0.2", 0.3),
    ("3.0 * trigger.tenth", 0.3),
    ("1.1 * 3.0", 3.3),
    ("4.35 * 100.0", 435.0),
    ("int(4.35 * 100.0)", 435),
    ("100.1 - 100.0", 0.1),
    ("0.3 / 0.1", 3.0),
    ("1.1 * 1.1", 1.21),
    ("math.round(1.005 * 100.0) / 100.0", 1.01),
    ("1.0 / 3.0 * 3.0", 1.0),
    ("1.0 / 3.0", 1 / 3),
    ("0.1 + 0.2 == 0.3", True),
    ("trigger.tenth * 3.0 > 0.3", False),
    ("string(trigger.tenth * 3.0) + ' EUR'", "0.3 EUR"),
    ("string(1234567.5)", "1234567.5"),
    ("string(100000000.0)", "100000000"),
    ("string(0.000012345678)", "0.000012345678"),
    ("string(trigger.long)", "0.12345678901234568"),
    ("string(1e21) + string(-0.0) + string(1e-9)", "1e+2101e-09"),
    ("string(trigger.whole) + string(true)", "7true"),
    ("'%s of %s'.format([1234567.5, trigger.whole])", "1234567.5 of 7"),
    ("'%s %% %.1f %s'.format([12345678.25, 2.25, trigger.name])", "12345678.25 % 2.2 x"),
    ("'%d'.format([trigger.whole])", "7"),
    ("[1.5, 2.5].map(x, string(x * 1000000.0)).join('+')", "1500000+2500000"),
    ("[0.1, 0.7].map(x, x * 3.0)", [0.3, 2.1]),
    ("[trigger.tenth].exists(x, x + 0.2 == 0.3)", True),
    ("coalesce(trigger.none, 0.1) * 3.0", 0.3),
    ("trigger.none < 1.0 || trigger.tenth + 0.2 == 0.3", True),
    ("-(0.1 + 0.2)", -0.3),
    ("1.0 / 0.0 > 5.0 && -1.0 / 0.0 < -5.0 && 1.0 / -0.0 < -5.0", True),
    ("0.0 / 0.0 == 0.0 / 0.0", False),
    ("trigger.long", 0.12345678901234568),
    ("trigger.long * 1.0", 0.12345678901234568),
    ("trigger.whole * 3", 21),
    ("trigger.whole / 2", 3),
    ("'a' + trigger.name", "ax"),
    ("[1] + [2]", [1, 2]),
    ("duration('1h') - duration('30m')", 1800),
]
DATA = {"tenth": 0.1, "none": None, "long": 0.12345678901234568, "whole": 7, "name": "x"}


def evaluate(text: str, **trigger: Any) -> Any:
    return saved_expression(text).evaluate({"trigger": {**DATA, **trigger}})


@pytest.mark.parametrize(("text", "expected"), SUMS)
def test_numbers_are_computed_as_decimals(text: str, expected: Any) -> None:
    assert repr(evaluate(text)) == repr(expected)


@pytest.mark.parametrize("text", ["1.0 / 0.0", "0.0 / 0.0", "-1.0 / 0.0", "1e308 * 10.0"])
def test_an_invalid_number_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError, match="not a valid JSON number"):
        evaluate(text)


@pytest.mark.parametrize("text", ["trigger.tenth + 1", "trigger.none * 2.0", "trigger.name - 1.0"])
def test_types_that_do_not_mix_still_do_not(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"No matching overloads found : _.*_\("):
        evaluate(text)


def test_ten_thousand_tenths_are_a_thousand() -> None:
    total = 0.0
    for _ in range(1_000):
        total = evaluate("trigger.total + 0.1 + 0.1 + 0.1 + 0.1 + 0.1", total=total)
    assert total == 500.0


def test_arithmetic_of_a_process_apart_is_the_same() -> None:
    tenths = [0.1] * 500
    assert evaluate("trigger.all.map(x, x * 3.0)", all=tenths) == [0.3] * 500


_SHORT = st.builds(
    lambda whole, places: Decimal(whole).scaleb(-places),
    st.integers(-(10**7), 10**7),
    st.integers(0, 4),
)


_OPERATORS = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
}


@given(_SHORT, _SHORT, st.sampled_from("+-*/"))
def test_short_decimals_give_the_decimal_people_expect(
    first: Decimal, second: Decimal, operator: str
) -> None:
    if operator == "/" and not second:
        return
    found = evaluate(f"trigger.a {operator} trigger.b", a=float(first), b=float(second))
    with localcontext(prec=60):
        exact = _OPERATORS[operator](first, second)
    if exact == round(exact, 9):
        assert repr(found) == repr(float(exact) + 0.0)
    else:
        assert found == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("text", ["double(trigger.id)", "double(string(trigger.id))"])
def test_a_whole_number_that_no_double_holds_becomes_none(text: str) -> None:
    with pytest.raises(ExpressionError, match="1147386954405658705 has more digits than a double"):
        evaluate(text, id=1147386954405658705)
    assert evaluate(text, id=9007199254740991) == 9007199254740991.0


@example(11421149746882740224)
@given(st.integers(-(10**30), 10**30))
def test_a_whole_number_passes_with_its_digits(number: int) -> None:
    for text in ("trigger.id", "string(trigger.id)", "[trigger.id][0]"):
        assert Decimal(str(evaluate(text, id=number))) == number
