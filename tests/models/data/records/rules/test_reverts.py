"""Reverting the writes of a record: what is reverted, and what stands against it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.record_changes.rules import ChangeKind
from models.data.records.rules.reverts import (
    Cause,
    ConflictReason,
    Reader,
    RecordRevert,
    RecordState,
    Stage,
)

RUN, OTHER = UUID(int=1), UUID(int=2)
UNDO, REDO = UUID(int=11), UUID(int=12)
RECORD = UUID(int=100)
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Change:
    """A change of the record as its history keeps it; the number gives its place."""

    number: int
    kind: str = ChangeKind.UPDATED
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    run_id: UUID | None = None
    undo_id: UUID | None = None
    omitted_keys: list[str] | None = None
    actor_user_id: UUID | None = None
    record_id: UUID = RECORD
    at: datetime = AT
    id: UUID = field(init=False)

    def __post_init__(self) -> None:
        self.id = UUID(int=1_000 + self.number)


def spec(kind: FieldKind) -> FieldSpec:
    return FieldSpec(
        id=UUID(int=50), key="a", label="A", kind=kind, required=False, options=(), settings={}
    )


def plan(
    changes: Sequence[Change],
    *,
    now: object = None,
    kind: FieldKind | None = FieldKind.NUMBER,
    cause: Cause | None = None,
    prior: ChangeKind | None = None,
    in_trash: bool = False,
    live: Sequence[str] = (),
) -> RecordRevert:
    """The revert of the run's writes of the field `a`, which holds `now`.

    With `live` records its links are visible.
    """
    reader = Reader(
        cause or Cause(run_ids={RUN}),
        {} if kind is None else {"a": spec(kind)},
        {REDO: UNDO},
        visible=["a"] if live else (),
        live_ids=live,
        deleted_ids=(),
    )
    values: dict[str, Any] = {} if now is None else {"a": now}
    return reader.plan(changes, prior, RecordState(values, archived=False, in_trash=in_trash))


def write(number: int, before: object, after: object, **values: Any) -> Change:
    """A write of the field by the run, or by whom `values` say."""
    own: dict[str, Any] = {} if values else {"run_id": RUN}
    return Change(number, before={"a": before}, after={"a": after}, **own, **values)


def reasons(revert: RecordRevert) -> list[ConflictReason]:
    return [conflict.reason for conflict in revert.conflicts]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (None, ConflictReason.FIELD_DELETED),
        (FieldKind.FORMULA, ConflictReason.FIELD_CONVERTED),
        (FieldKind.AUTO_NUMBER, ConflictReason.FIELD_CONVERTED),
        (FieldKind.RELATION, ConflictReason.NOT_VISIBLE),
    ],
    ids=["deleted", "formula", "number", "hidden"],
)
def test_a_field_that_cannot_be_written_is_a_conflict(
    kind: FieldKind | None, reason: ConflictReason
) -> None:
    revert = plan([write(1, 1, 2)], now=2, kind=kind)
    assert (revert.stage, reasons(revert)) == (None, [reason])


def test_a_value_that_was_converted_since_is_a_conflict() -> None:
    revert = plan([write(1, 1, 2)], now="2", kind=FieldKind.TEXT)
    assert reasons(revert) == [ConflictReason.CHANGED_SINCE]
    assert revert.conflicts[0].change is None


def test_values_of_other_types_are_not_the_same() -> None:
    assert plan([write(1, False, True)], now=1).values == {}
    assert plan([write(1, None, 0)], now=0).values == {"a": None}


def test_writes_that_follow_each_other_go_back_to_the_first() -> None:
    changes = [write(1, 1, 2), write(2, 2, 3), write(3, 3, 4)]
    assert plan(changes, now=4).values == {"a": 1}
    assert reasons(plan(changes, now=3)) == [ConflictReason.CHANGED_SINCE]
    between = [write(1, 1, 2), write(2, 2, 3, run_id=OTHER), write(3, 3, 4), write(4, 4, 5)]
    assert plan(between, now=5).values == {"a": 3}


def test_the_undo_of_another_run_takes_its_writes_away() -> None:
    changes = [write(1, 1, 2), write(2, 2, 3, run_id=OTHER)]
    assert reasons(plan(changes, now=3)) == [ConflictReason.CHANGED_SINCE]
    changes.append(write(3, 3, 2, undo_id=UNDO))
    assert plan(changes, now=2).values == {"a": 1}
    changes.append(write(4, 2, 3, undo_id=REDO))
    assert reasons(plan(changes, now=3)) == [ConflictReason.CHANGED_SINCE]


def test_the_undo_of_an_undo_returns_what_that_one_took_though_values_repeat() -> None:
    one, other = UUID(int=3), UUID(int=4)
    changes = [write(1, 1, 3), write(2, 3, 2, run_id=one), write(3, 2, 3, run_id=other)]
    changes.append(write(4, 3, 2, undo_id=UNDO))
    assert reasons(plan(changes, now=2)) == [ConflictReason.CHANGED_SINCE]
    changes.append(write(5, 2, 3, undo_id=REDO))
    assert reasons(plan(changes, now=3)) == [ConflictReason.CHANGED_SINCE]


@pytest.mark.parametrize(
    ("now", "values", "conflicts"),
    [
        (["y"], {"a": ["x"]}, []),
        (["y", "gone"], {"a": ["x"]}, []),
        (["x"], {}, []),
        (["gone", "x"], {}, []),
        (["x", "y"], {}, [ConflictReason.CHANGED_SINCE]),
    ],
)
def test_links_to_records_in_the_trash_make_no_difference(
    now: list[str], values: dict[str, Any], conflicts: list[ConflictReason]
) -> None:
    revert = plan([write(1, ["x"], ["y"])], now=now, kind=FieldKind.RELATION, live=["x", "y"])
    assert (revert.values, reasons(revert)) == (values, conflicts)


def test_another_run_that_ended_where_it_began_changed_nothing() -> None:
    circle = [write(2, 2, 3, run_id=OTHER), write(3, 3, 2, run_id=OTHER)]
    assert plan([write(1, 1, 2), *circle], now=2).values == {"a": 1}
    person = [write(2, 2, 3, actor_user_id=OTHER), write(3, 3, 2, actor_user_id=OTHER)]
    assert reasons(plan([write(1, 1, 2), *person], now=2)) == [ConflictReason.CHANGED_SINCE]


def test_a_restored_record_is_deleted_or_archived_as_it_was_before() -> None:
    restored = Change(1, ChangeKind.RESTORED, {}, {}, undo_id=UNDO)
    cause = Cause(undo_ids={UNDO})
    assert plan([restored], cause=cause, prior=ChangeKind.DELETED).stage is Stage.TRASH
    revert = plan([restored], cause=cause, prior=ChangeKind.ARCHIVED)
    assert (revert.stage, revert.archived) == (Stage.UPDATE, True)
