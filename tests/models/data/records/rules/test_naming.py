"""Fields, options and relations are named as people name them; a missing one is reported."""

import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from models.core.values import InvalidValueError
from models.data.fields.rules.fields import (
    FieldHints,
    FieldKind,
    FieldSpec,
    FieldSpecs,
    Option,
    no_field,
)
from models.data.fields.rules.values import default_text
from models.data.records.rules.links import read_relations
from models.data.records.rules.query.filters import read_filter
from models.data.records.rules.values import DataCheck

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def option(key: str, name: str) -> Option:
    return Option(id=str(uuid4()), key=key, name=name, color="gray", order=0)


def field(key: str, kind: FieldKind = FieldKind.TEXT, **more: Any) -> FieldSpec:
    return FieldSpec(id=uuid4(), key=key, **{"label": key.title(), "kind": kind, **more})


STAGE = field(
    "stage",
    FieldKind.SELECT,
    options=(
        option("open", "Closed"),
        option("closed", "Won"),
        option("sent", "Offer sent"),
        option("a", "Twice"),
        option("b", "twice"),
    ),
)
FIELDS: FieldSpecs = {
    one.key: one
    for one in (
        field("title"),
        field("amount", FieldKind.NUMBER, label="Net total"),
        STAGE,
        field("company", FieldKind.RELATION, settings={"cardinality": "one"}),
        field("people", FieldKind.RELATION, settings={"cardinality": "many"}),
    )
}


@pytest.mark.parametrize(
    ("chosen", "key"),
    [("sent", "sent"), ("Offer sent", "sent"), (" OFFER SENT", "sent"), ("closed", "closed")],
)
def test_an_option_is_named_by_its_key_or_its_name_everywhere(chosen: str, key: str) -> None:
    change, problems = DataCheck(FIELDS).patch({"stage": chosen})
    assert (change.values, problems) == ({"stage": key}, [])
    assert default_text(STAGE, chosen) == key
    asked = {"field": "stage", "op": "eq", "value": chosen}
    by_key = {**asked, "value": key}
    assert read_filter(asked, FIELDS, NOW) == read_filter(by_key, FIELDS, NOW)


def test_a_name_that_several_options_have_means_none() -> None:
    _, (problem,) = DataCheck(FIELDS).patch({"stage": "Twice"})
    assert problem.path == "data.stage"
    assert problem.message.startswith("is the name of several options; use a key; known: ")


@pytest.mark.parametrize("asked", ["Amount", "net_total", "amuont"])
def test_an_unknown_key_is_answered_with_the_nearest_first(asked: str) -> None:
    _, (problem,) = DataCheck(FIELDS).patch({asked: 1})
    assert problem.path == f"data.{asked}"
    assert "; known: amount, " in problem.message
    assert no_field(asked, FIELDS) == problem.message


def test_a_relation_to_one_record_takes_its_id() -> None:
    target = uuid4()
    assert read_relations(FIELDS, {"company": str(target)}) == ({"company": [target]}, [])
    assert read_relations(FIELDS, {"company": [str(target)]}) == ({"company": [target]}, [])
    for wrong in ({"people": str(target)}, {"company": "nobody"}, {"company": 5}):
        assert [one.path for one in read_relations(FIELDS, wrong)[1]] == [
            f"relations.{next(iter(wrong))}"
        ]


def test_a_value_of_another_kind_than_a_relation_names_its_place() -> None:
    messages = [one.message for one in read_relations(FIELDS, {"amount": [], "Company": []})[1]]
    assert messages[0] == "is a number field: set it as data.amount"
    assert messages[1].endswith("; known: company, people")


def test_many_unknown_keys_cost_little() -> None:
    many = {f"field_{at}_of_many": field(f"field_{at}_of_many") for at in range(500)}
    check = DataCheck(many)
    began = time.process_time()
    _, problems = check.patch({f"field_{at}_of_man": 1 for at in range(50_000)})
    assert time.process_time() - began < 10
    assert len(problems) == 50_000
    hints = FieldHints(many)
    assert "known" in hints.no_field("x")
    assert hints.no_field("x") == hints.no_field("x")


@pytest.mark.parametrize("asked", ["Offer", "close", "lost"])
def test_no_option_is_refused_with_the_nearest_first(asked: str) -> None:
    nearest = {"Offer": "sent", "close": "closed"}.get(asked, "")
    with pytest.raises(InvalidValueError, match=f"of an option; known: {nearest}"):
        default_text(STAGE, asked)
