"""Changes of records as triggers see them: their kinds, their merging, their size."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from models.automation.automations.rules.language.filters import Asked
from models.automation.triggers.rules import (
    changes_anything,
    concerns_change,
    concerns_event,
    kind_of,
    merged,
    mismatch,
    payload_of,
    with_part,
)
from models.core.base import Id
from models.core.expressions.rules.errors import BindingError
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.records.rules.writes import MAX_EVENT_BYTES, bounded_change

Json = dict[str, Any]
SUBJECT = Id("0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f")


def record(*, archived: bool = False, **data: Any) -> Json:
    return {"archived": archived, "data": data, "relations": {}, "computed": {}, "system": {}}


def change(before: Json | None, after: Json, *keys: str, **others: Any) -> Json:
    actor = {"type": "session", "userId": None, "runId": None}
    known = {"actor": actor, "gone": False, "system": False}
    return {"record": after, "before": before, "changedKeys": sorted(keys), **known, **others}


def test_a_change_is_of_the_kind_of_what_it_leaves() -> None:
    one = record(a=1)
    assert kind_of(change(None, one)) == "record_created"
    assert kind_of(change(one, one)) == "record_updated"
    assert kind_of(change(one, one, gone=True)) == "record_deleted"
    assert kind_of(change(None, one, gone=True)) is None


def test_runs_get_the_payload_of_the_interface() -> None:
    assert sorted(payload_of(change(None, record()))) == [
        "actor",
        "before",
        "changedKeys",
        "record",
    ]


STATES = st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.integers(0, 2)})


@given(st.lists(STATES, min_size=2, max_size=6), st.integers(0, 6))
def test_merged_changes_are_the_one_from_the_first_state_to_the_last(
    states: list[Json], middle: int
) -> None:
    parts = [
        change(record(**old), record(**new), *(key for key in new if new[key] != old[key]))
        for old, new in pairwise(states)
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = merged(whole, part)
    again = with_part(whole, parts[middle % len(parts)])
    first, last = states[0], states[-1]
    assert whole["before"]["data"] == first
    assert whole["record"]["data"] == last
    assert whole["changedKeys"] == sorted(key for key in last if last[key] != first[key])
    assert again == whole
    assert changes_anything(whole) is (first != last)


def test_archiving_is_a_change_of_no_field() -> None:
    assert changes_anything(change(record(), record(archived=True)))
    assert not changes_anything(change(record(), record()))


def test_a_change_too_large_to_wait_loses_its_long_values() -> None:
    small = change(record(a=1), record(a=2), "a")
    assert bounded_change(small) == small
    long: Json = {f"k{n}": "x" * 200_000 for n in range(4)}
    kept = bounded_change(change(record(a=1, **long), record(a=2, **long), "a"))
    assert len(to_json(kept)) < MAX_EVENT_BYTES
    assert kept["record"]["data"] == {"a": 2}
    assert kept["record"]["omittedKeys"] == sorted(long)


def test_many_values_are_too_large_together() -> None:
    many: Json = {f"k{n}": "x" * 9_000 for n in range(100)}
    kept = bounded_change(change(record(a=1, **many), record(a=2, **many), "a"))
    assert len(to_json(kept)) < MAX_EVENT_BYTES
    assert kept["record"]["data"] == {"a": 2}
    assert kept["record"]["omittedKeys"] == sorted(many)


def test_a_long_value_that_changes_twice_is_not_forgotten() -> None:
    states = [record(a=1, long=letter * 600_000) for letter in "xyz"]
    first, later = (bounded_change(change(*both, "long")) for both in pairwise(states))
    whole = bounded_change(merged(first, later))
    assert changes_anything(whole)
    assert whole["changedKeys"] == ["long"]
    assert whole["before"]["omittedKeys"] == whole["record"]["omittedKeys"] == ["long"]


OPEN = {"field": "state", "op": "eq", "value": "open"}
AT_NINE = {"field": "due", "op": "eq", "value": "2026-01-31T10:00:00+01:00"}
FIELDS = {
    key: FieldSpec(id=Id(int=number), key=key, label=key, kind=kind)
    for number, (key, kind) in enumerate(
        {"state": FieldKind.TEXT, "due": FieldKind.DATETIME, "price": FieldKind.NUMBER}.items()
    )
}
ASKED = Asked(FIELDS, datetime(2026, 1, 31, 12, tzinfo=UTC))


def matches(config: Json, one: Json) -> bool:
    return concerns_change(config, one) and mismatch(config, one, ASKED) is None


@pytest.mark.parametrize(
    ("before", "after", "answers"),
    [
        (None, "open", True),
        (None, "shut", False),
        ("shut", "open", True),
        ("open", "open", False),
        ("open", "shut", False),
    ],
)
@pytest.mark.parametrize("given_", [OPEN, "record.data.state == 'open'"], ids=["tree", "cel"])
def test_a_record_begins_to_match_once(
    given_: Any, before: str | None, after: str, *, answers: bool
) -> None:
    old = None if before is None else record(state=before)
    config = {"kind": "record_matches", "filter": given_}
    one = change(old, record(state=after), "state")
    assert matches(config, one) is answers
    assert not matches(config, {**one, "gone": True})
    assert not matches(config, {**one, "system": True})


@pytest.mark.parametrize(
    ("given_", "answers"),
    [
        ({"field": "due", "op": "eq", "value": "2026-01-31T10:00:00+01:00"}, True),
        ({"field": "due", "op": "gt", "value": "2026-01-31T10:30:00+02:00"}, True),
        ({"field": "due", "op": "on", "value": "2026-01-31"}, True),
        ({"field": "due", "op": "relative", "value": "today", "timezone": "Asia/Tokyo"}, True),
        ({"field": "due", "op": "relative", "value": "yesterday"}, False),
        (
            {
                "field": "due",
                "op": "within",
                "value": {"unit": "hour", "count": 2, "direction": "past"},
            },
            False,
        ),
        ({"field": "state", "op": "starts_with", "value": "OP"}, True),
        ({"not": {"field": "price", "op": "between", "value": [1, 2]}}, True),
        ({"and": [OPEN, {"field": "before.data.state", "op": "ne", "value": "open"}]}, True),
        ({"and": [AT_NINE, {"field": "changedKeys", "op": "contains", "value": "state"}]}, True),
        ({"and": [AT_NINE, {"field": "record.data.state", "op": "eq", "value": "shut"}]}, False),
        ({"field": "record.data.due", "op": "eq", "value": "2026-01-31T09:00:00.000Z"}, True),
        ({"field": "record.data.due", "op": "eq", "value": "2026-01-31T10:00:00+01:00"}, False),
    ],
    ids=[
        *("moment", "offset", "day", "today", "yesterday", "stretch", "case", "empty", "mixed"),
        *("field_beside_path", "path_beside_field", "path", "path_is_text"),
    ],
)
def test_a_filter_of_fields_means_what_it_means_in_a_query(given_: Any, *, answers: bool) -> None:
    new = record(state="open", due="2026-01-31T09:00:00.000Z", price=None)
    one = change(record(state="shut"), new, "state")
    config = {"kind": "record_updated", "filter": given_}
    assert matches(config, one) is answers


@pytest.mark.parametrize(
    "given_",
    [
        {"field": "gone", "op": "is_empty"},
        {"field": "due", "op": "before", "value": "2026-02-01"},
        {"and": [{"field": "record.title", "op": "is_empty"}, AT_NINE]},
    ],
    ids=["field", "value", "value_beside_path"],
)
def test_a_filter_that_fits_the_record_no_more_cannot_judge(given_: Any) -> None:
    one = change(record(), record(due="soon"), "due")
    with pytest.raises(BindingError):
        matches({"kind": "record_updated", "filter": given_}, one)


@pytest.mark.parametrize(
    ("config", "payload", "concerns"),
    [
        ({"kind": "button_pressed", "fieldKey": "go"}, {"fieldKey": "go"}, True),
        ({"kind": "button_pressed", "fieldKey": "go"}, {"fieldKey": "stop"}, False),
        ({"kind": "automation_failed", "automationIds": "any"}, {}, True),
        ({"kind": "automation_failed", "automationIds": [str(SUBJECT).upper()]}, {}, True),
        ({"kind": "automation_failed", "automationIds": [str(Id(int=8))]}, {}, False),
        ({"kind": "form_submitted", "formId": str(SUBJECT)}, {}, True),
    ],
)
def test_an_event_concerns_the_triggers_of_its_button_or_automation(
    config: Json, payload: Json, *, concerns: bool
) -> None:
    assert concerns_event(config, SUBJECT, payload) == concerns
