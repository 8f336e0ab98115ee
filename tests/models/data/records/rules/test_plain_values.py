"""Values of many records looked at together: what is stored is what each alone would leave."""

import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.fields.rules.fields import STORED_KINDS, FieldKind, FieldSpec, FieldSpecs, Option
from models.data.records.rules.values import Change, DataCheck

OPTIONS = (Option(id="1", key="low", name="Low", color="gray", order=0),)
FIELDS: FieldSpecs = {
    f"{kind}{' needed' if required else ''}": FieldSpec(
        id=uuid.uuid4(), key=kind, label=kind, kind=kind, options=OPTIONS, required=required
    )
    for kind in sorted(STORED_KINDS)
    for required in (False, True)
}
CHECK = DataCheck(FIELDS)

VALUES = st.sampled_from(
    [
        *("", "low", "Low", "10:00", "10:00:00", "2026-01-31", "2026-01-31T09:00:00.000Z"),
        *(
            "2026-01-31T09:00:00+01:00",
            "a@example.com",
            "https://example.com",
            "HTTP://a.b",
            "\x00",
        ),
        *(
            "+49 30 901820",
            "\ud800",
            "x" * 10_001,
            str(uuid.UUID(int=7)),
            str(uuid.UUID(int=7 << 64)),
        ),
        *(None, True, False, 0, 3, 3.0, -0.0, 2.5, 11, 1e101, float("nan"), 10**200),
        *([], ["low"], ["Low"], ["low", "low"], [[]], [3], [{}], {}, {"lat": 1, "lng": 2}),
        *({"lat": 1, "lng": 2.0, "label": None}, {"a": [None, True]}, [str(uuid.UUID(int=7))]),
    ]
)
"""Values that are fine for some kind, some of them in another form than the stored one."""


def stored(change: Change) -> str:
    """The change as it is written: 3 and 3.0 are different."""
    return json.dumps([dict(change.values), sorted(change.cleared)])


@given(
    st.lists(st.dictionaries(st.sampled_from([*FIELDS, "nobody"]), VALUES, max_size=6), max_size=4)
)
def test_values_looked_at_together_are_taken_and_refused_as_alone(
    rows: list[dict[str, Any]],
) -> None:
    plain = CHECK.plain_keys(rows)
    for row in rows:
        (together, refused), (alone, problems) = CHECK.patch(row, "", plain), CHECK.patch(row)
        assert stored(together) == stored(alone)
        assert refused == problems


@pytest.mark.parametrize("key", FIELDS)
@given(rows=st.lists(VALUES, min_size=1, max_size=3))
def test_the_values_of_a_field_are_plain_only_as_they_are_stored(key: str, rows: list[Any]) -> None:
    if key in CHECK.plain_keys({key: value} for value in rows):
        for value in rows:
            change, problems = CHECK.patch({key: value})
            assert problems == []
            assert stored(change) == stored(Change({key: value}))


def test_plain_values_are_seen_as_such() -> None:
    rows: list[dict[str, Any]] = [
        {FieldKind.NUMBER: 1.5, FieldKind.DATE: "2026-01-31"},
        {FieldKind.MULTI_SELECT: ["low"]},
    ]
    assert CHECK.plain_keys(rows) == {FieldKind.NUMBER, FieldKind.DATE, FieldKind.MULTI_SELECT}


def test_a_default_is_looked_at_with_the_values() -> None:
    kind = FieldKind.SELECT
    spec = FieldSpec(
        id=uuid.uuid4(), key="x", label="x", kind=kind, options=OPTIONS, default="gone"
    )
    check = DataCheck({"x": spec})
    plain = check.plain_keys([{"x": "low"}, {}])
    assert [detail.path for detail in check.new({}, "", plain)[1]] == ["data.x"]
