"""Stored values whose fields get another key: by type, and nowhere else."""

from typing import Any

import pytest

from models.core.expressions.rules.typed_reads import (
    FieldsOf,
    KeyOf,
    ListOf,
    Struct,
    ValueOf,
    ValueType,
    record_of,
    with_key,
)

RECORD = {"id": "1", "title": "A", "data": {"price": 7, "name": "price"}}
RENAMED = {"id": "1", "title": "A", "data": {"cost": 7, "name": "price"}}


@pytest.mark.parametrize(
    ("of", "value", "renamed"),
    [
        (record_of("db"), RECORD, RENAMED),
        (record_of("other"), RECORD, RECORD),
        (
            Struct({"record": record_of("db")}),
            {"record": RECORD, "price": 1},
            {"record": RENAMED, "price": 1},
        ),
        (ListOf(record_of("db")), [RECORD, None, RECORD], [RENAMED, None, RENAMED]),
        (ListOf(KeyOf("db")), ["price", "name"], ["cost", "name"]),
        (KeyOf("other"), "price", "price"),
        (ValueOf("db", "price"), "price", "price"),
        (FieldsOf("db"), None, None),
        (record_of("db"), "not a record", "not a record"),
        (None, {"price": 1}, {"price": 1}),
    ],
)
def test_a_field_has_another_key(of: ValueType, value: Any, renamed: Any) -> None:
    assert with_key(value, of, "db", "price", "cost") == renamed


def test_the_order_of_keys_stays() -> None:
    fields = {"first": 1, "price": 2, "last": 3}
    renamed = with_key(fields, FieldsOf("db"), "db", "price", "cost")
    assert isinstance(renamed, dict)
    assert list(renamed) == ["first", "cost", "last"]
