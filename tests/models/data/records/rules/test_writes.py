"""What a write makes of a record: only what really changes, and a time that never repeats."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError as ShapeError

from models.data.record_changes.rules import MAX_KEPT, ChangeKind, changed_keys, recorded
from models.data.records.rules.values import Change
from models.data.records.rules.writes import (
    Checked,
    Planned,
    StoredRecord,
    Write,
    WriteOp,
    plan_change,
    read_operations,
    repeated_writes,
)
from models.data.records.shapes import RecordBatch
from models.data.records.tables import record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USER = uuid.uuid4()
ONE, TWO = uuid.uuid4(), uuid.uuid4()


def stored(**more: Any) -> StoredRecord:
    row = dict.fromkeys(StoredRecord._fields)
    state = {"id": uuid.uuid4(), "title": "A", "data": {"a": 1, "b": [1]}, "archived": False}
    return StoredRecord(**{**row, **state, "updated_at": NOW, **more})


def change(
    before: StoredRecord,
    values: dict[str, Any] | None = None,
    *cleared: str,
    links: Any = ({}, {}),
    **more: Any,
) -> Planned:
    write = Write(**{"op": WriteOp.UPDATE, **more})
    checked = Checked(write, before, Change(values or {}, frozenset(cleared)), links[1])
    return plan_change(checked, before, links, USER, NOW)


def test_a_stored_record_has_the_columns_of_its_table() -> None:
    of_history = {"creation_principal_type", "creation_run_id", "creation_node_id"}
    assert {*StoredRecord._fields, *of_history} == {column.name for column in record.c}


@pytest.mark.parametrize(
    ("values", "cleared"),
    [({}, ()), ({"a": 1.0, "b": [1], "title": "A"}, ()), ({}, ("c",)), ({"b": [1.0]}, ("d",))],
    ids=range(4),
)
def test_equal_values_are_no_change(values: Any, cleared: Any) -> None:
    before = stored()
    planned = change(before, values, *cleared, archived=False)
    assert (planned.after, planned.kind, planned.history) == (before, None, None)


def test_only_what_changes_is_kept() -> None:
    planned = change(stored(), {"a": 2, "b": [1], "c": "new", "title": "B"}, "gone")
    assert planned.kind is ChangeKind.UPDATED
    assert planned.after.data == {"a": 2, "c": "new"} | {"b": [1]}
    assert planned.after.title == "B"
    assert planned.history is not None
    assert planned.history.before == {"a": 1, "title": "A"}
    assert planned.history.after == {"a": 2, "c": "new", "title": "B"}
    assert planned.changed_keys == {"a", "c", "title"}


def test_a_cleared_title_is_empty_and_a_cleared_key_is_gone() -> None:
    planned = change(stored(), {}, "title", "a")
    assert (planned.after.title, planned.after.data) == ("", {"b": [1]})
    assert planned.history is not None
    assert planned.history.before == {"title": "A", "a": 1}
    assert planned.history.after == {"title": ""}


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(seconds=5), timedelta(seconds=-5)])
def test_the_time_of_a_change_never_repeats(ahead: timedelta) -> None:
    before = stored(updated_at=NOW + ahead)
    planned = change(before, {"a": 2})
    assert planned.after.updated_at > before.updated_at
    assert planned.after.updated_at >= NOW
    assert planned.after.updated_by_user_id == USER


@pytest.mark.parametrize(
    ("before", "op", "archived", "kind"),
    [
        ({}, WriteOp.ARCHIVE, True, ChangeKind.ARCHIVED),
        ({"archived": True}, WriteOp.ARCHIVE, True, None),
        ({"archived": True}, WriteOp.RESTORE, False, ChangeKind.RESTORED),
        ({}, WriteOp.RESTORE, False, None),
        ({"deleted_at": NOW}, WriteOp.RESTORE, False, ChangeKind.RESTORED),
        ({"deleted_at": NOW, "archived": True}, WriteOp.RESTORE, False, ChangeKind.RESTORED),
        ({}, WriteOp.DELETE, None, ChangeKind.DELETED),
    ],
    ids=range(7),
)
def test_states(before: Any, op: WriteOp, archived: bool | None, kind: ChangeKind | None) -> None:
    planned = change(stored(**before), op=op, archived=archived)
    assert planned.kind is kind
    assert planned.appears == (kind is ChangeKind.DELETED or "deleted_at" in before)
    assert (planned.after.deleted_at is not None) == (kind is ChangeKind.DELETED)
    if kind is ChangeKind.DELETED:
        assert planned.after.updated_at == NOW


def test_links_change_when_others_are_named_or_in_another_order() -> None:
    for wanted, changes in (([ONE, TWO], False), ([TWO, ONE], True), ([ONE], True), ([], True)):
        planned = change(stored(), links=({"r": [ONE, TWO]}, {"r": wanted}))
        assert (planned.kind is not None) == changes
        assert planned.changed_keys == ({"r"} if changes else set())


def test_long_values_are_named_and_left_out() -> None:
    kept, lost = "x" * (MAX_KEPT - 2), "x" * (MAX_KEPT - 1)
    one = recorded(ONE, ChangeKind.UPDATED, {"a": lost, "b": 1}, {"a": "x", "b": kept, "c": [lost]})
    assert (one.before, one.after, one.omitted) == ({"b": 1}, {"b": kept}, ["a", "c"])
    assert changed_keys(one.before, one.after, one.omitted) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ({"op": "delete", "recordId": str(ONE), "title": None}, "delete.title"),
        ({"op": "upsert", "upsertBy": ["a"], "recordId": str(ONE)}, "upsert.recordId"),
        ({"op": "upsert"}, "upsert.upsertBy"),
        ({"op": "upsert", "upsertBy": []}, "upsert.upsertBy"),
        ({"op": "update", "recordId": str(ONE), "upsertBy": ["a"]}, "update.upsertBy"),
        ({"op": "update"}, "update.recordId"),
    ],
)
def test_operations_take_what_they_need_and_nothing_else(
    operation: dict[str, Any], path: str
) -> None:
    with pytest.raises(ShapeError) as refused:
        RecordBatch.model_validate_json(json.dumps({"operations": [operation]}))
    found = [".".join(map(str, problem["loc"])) for problem in refused.value.errors()]
    assert found == [f"operations.0.{path}"]


def test_operations_are_read_as_they_are_meant() -> None:
    of = f'"recordId": "{ONE}"'
    body = RecordBatch.model_validate_json(
        f"""{{"operations": [
            {{"op": "create", "title": "a"}}, {{"op": "upsert", "upsertBy": ["a"], "title": "b"}},
            {{"op": "update", {of}, "title": null}}, {{"op": "archive", {of}}},
            {{"op": "restore", {of}}}, {{"op": "delete", {of}}},
            {{"op": "delete", {of}, "expectedUpdatedAt": "yesterday"}}]}}"""
    )
    writes, problems = read_operations(body.operations)
    read = [(one.op, one.record_id, one.data, one.upsert_by, one.archived) for one in writes]
    assert read == [
        ("create", None, {"title": "a"}, (), None),
        ("upsert", None, {"title": "b"}, ["a"], None),
        ("update", ONE, {"title": None}, (), None),
        ("archive", ONE, {}, (), True),
        ("restore", ONE, {}, (), False),
        ("delete", ONE, {}, (), None),
    ]
    assert [problem.path for problem in problems] == ["operations.6.expectedUpdatedAt"]


def test_the_later_of_two_writes_is_the_one_too_many() -> None:
    writes = [Write(op=WriteOp.DELETE, at=f"operations.{n}.", record_id=ONE) for n in range(3)]
    found = repeated_writes((write, write.record_id) for write in writes)
    assert [problem.path for problem in found] == ["operations.1.recordId", "operations.2.recordId"]
    assert all("operations.0" in problem.message for problem in found)


def test_a_value_of_up_to_16_kib_is_kept_in_a_change() -> None:
    for length, omitted in ((16 * 1024, []), (16 * 1024 + 1, ["a"])):
        after = {"a": "x" * (length - 2), "b": 1}
        change = recorded(uuid.uuid4(), ChangeKind.UPDATED, None, after)
        assert list(change.omitted) == omitted
