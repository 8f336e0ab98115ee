"""Stored values and texts whose fields get another key: by type, and nowhere else."""

from typing import Any

import pytest

from models.core.expressions.rules.typed_reads import (
    FieldsOf,
    KeyOf,
    ListOf,
    Struct,
    ValueOf,
    ValueType,
    reads_of,
    record_of,
    renamed_in,
    with_keys,
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
    assert with_keys(value, of, "db", {"price": "cost"}) == renamed


def test_the_order_of_keys_stays() -> None:
    fields = {"first": 1, "price": 2, "last": 3}
    renamed = with_keys(fields, FieldsOf("db"), "db", {"price": "cost"})
    assert isinstance(renamed, dict)
    assert list(renamed) == ["first", "cost", "last"]


VARIABLES: dict[str, ValueType | None] = {
    "record": record_of("db"),
    "rows": ListOf(record_of("db")),
    "keys": ListOf(KeyOf("db")),
    "other": record_of("other"),
}


@pytest.mark.parametrize(
    "text",
    [
        "record.data.PRICE + 1.0",
        "-record.data\n .PRICE",
        "((record)).data.PRICE > ((1.0))",
        "((record).data)['PRICE'] != null",
        "(((rows[0])).data)['PRICE']",
        "([record])[(0)].data.PRICE + (rows)[(0)].data.PRICE",
        "record.?data.?PRICE.orValue(0.0)",
        'record.data[?"PRICE"].orValue(0.0)',
        "rows[0].data.PRICE + rows[(1)].data['PRICE']",
        "rows[size(rows) - 1].data.PRICE",
        "rows[rows.size() - (1)].data['PRICE']",
        "[0, 1].map(i, rows[i].data.PRICE)",
        "rows.filter(r, has(r.data.PRICE)).map(r, r.data.PRICE)",
        "rows.map(r, has(r.id), r).map(s, s.data.PRICE)",
        "(record.data.done ? record : null).data.PRICE",
        "(true ? record : rows[(1)]).data.PRICE",
        "[record][0].data.PRICE + {'a': record}.a.data.PRICE",
        "rows.first().data.PRICE in ['price']",
        "'PRICE' in keys || keys[0] == 'PRICE' || 'PRICE' in record.data",
        "record.title == 'price' || record.data.name == 'price'",
        "other.data.price + size('price')",
    ],
)
def test_a_text_reads_a_field_by_another_key(text: str) -> None:
    before = text.replace("PRICE", "price")
    reads = [
        read
        for read in reads_of(before, VARIABLES).reads
        if (read.database, read.key, read.option) == ("db", "price", "")
    ]
    assert renamed_in(before, reads, "cost") == text.replace("PRICE", "cost")


def test_a_text_names_an_option_where_it_compares_a_field() -> None:
    text = "record.data.status == 'open' || record.data.status in ['open', 'done']"
    options = [read for read in reads_of(text, VARIABLES).reads if read.option]
    assert [(read.key, read.option) for read in options] == [
        ("status", "open"),
        ("status", "open"),
        ("status", "done"),
    ]
    assert [text[read.start : read.end].strip("'") for read in options] == ["open", "open", "done"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("record.data['price']", "record.data['net cost']"),
        ('record.data["price"]', 'record.data["net cost"]'),
        ("record.data[r'price']", 'record.data["net cost"]'),
    ],
)
def test_a_key_is_written_between_the_signs_that_it_had(text: str, written: str) -> None:
    assert renamed_in(text, reads_of(text, VARIABLES).reads, "net cost") == written
