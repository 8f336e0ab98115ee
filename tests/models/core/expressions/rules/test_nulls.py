"""Null in expressions: false in comparisons by order, and the value of a field without one."""

from typing import Any

import pytest

from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import compile_expression

RECORD = {"id": "r1", "databaseId": "d1", "data": {"name": "Car", "none": None}, "computed": {}}
TRIGGER: dict[str, Any] = {
    "record": RECORD,
    "records": [RECORD],
    "none": None,
    "body": {"data": {}},
}


def evaluate(text: str) -> Any:
    return compile_expression(text).evaluate({"trigger": TRIGGER, "item": RECORD})


@pytest.mark.parametrize("order", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("text", ["trigger.none {} 1", "2.5 {} item.data.none"])
def test_comparing_null_by_order_is_false(text: str, order: str) -> None:
    assert evaluate(text.format(order)) is False


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("trigger.record.data.price", None),
        ("trigger.record.data.price > 100", False),
        ("trigger.record.data.price == null", True),
        ("trigger.record.computed.total >= 1", False),
        ("trigger.records.exists(r, r.data.price > 100)", False),
        ("trigger.records.map(r, r.data.price)", [None]),
        ("trigger.records[0].data.price > 1 || trigger.record.data.name == 'Car'", True),
        ("item.data.price < 3", False),
        ("!(trigger.record.data.price > 100)", True),
        ("has(trigger.record.data.price)", False),
        ("trigger.record.data.name", "Car"),
    ],
)
def test_a_field_without_a_value_reads_as_null(text: str, value: object) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    ["trigger.record.price > 1", "trigger.body.data.price", "trigger.record.data.price + 1"],
)
def test_a_key_that_no_record_has_stays_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text)
