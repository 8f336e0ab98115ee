"""Undos of runs: their table, their shapes on the wire, and reading them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.history import OutsideEffect, outside_effects
from models.automation.automation_runs.queries import load_run
from models.automation.run_undos.rules import STOPPED, RunUndoRow
from models.automation.written_records import WritingNode, nodes_of_records, writing_nodes
from models.core.access.rules import Actor
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Moment, Shape, example
from models.core.pagination import Listed, PageRequest
from models.data.fields.queries import seen_labels
from models.data.record_changes.rules import ChangeKind
from models.data.records.reverts import RecordConflict, UndoneChange, undone_changes
from models.data.records.rules.reverts import ConflictReason
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class RunUndo(SQLModel, table=True):
    """One undo of a run, or of an earlier undo of it (`undoes_id`).

    The changes it made are in the histories of records. `stage` and `after_record_id` say how far
    it has come; `completed_at` is null until it, or its operation, has come to its end. `conflicts`
    holds the first of `conflict_count`. `operation_id` is the operation over runs that carries it
    out, if any.
    """

    __tablename__ = "run_undo"
    __table_args__ = (
        same_workspace("run_id", "automation_run.id"),
        sa.Index("ix_run_undo_run_id", "run_id", "id"),
        sa.Index(
            "ix_run_undo_operation_id",
            "operation_id",
            postgresql_where=sa.text("completed_at IS NULL AND operation_id IS NOT NULL"),
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    run_id: Id
    undoes_id: Id | None = None
    operation_id: Id | None = None
    actor_user_id: Id
    stage: str
    after_record_id: Id | None = None
    runs: int
    records: int
    reverted: int
    conflict_count: int
    conflicts: list[dict[str, Any]] = Field(sa_type=JSONB)
    created_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


run_undo = table_of(RunUndo)


MAX_SHOWN = 500
"""Reverted changes, conflicts and outside effects that an answer lists of each."""
MAX_VALUE = 2 * 1024
"""Bytes of JSON of a value that an answer shows."""

FieldValues = dict[str, Any]


class UndoRun(Input):
    """Body of undo automation run.

    With `preview` nothing is written. `undoId` names an undo of the run: that one is undone, in
    place of the run.
    """

    model_config = example({"preview": True})

    preview: bool = False
    undo_id: InputId | None = None


class RevertedRecord(Shape):
    """A reverted record: `before` and `after` hold the values of fields that changed.

    A field missing on one side has no value there. `omittedKeys` names changed fields whose values
    are too long to show. `nodeIds` are the nodes of the runs that wrote the record.
    """

    record_id: Id
    database_id: Id
    title: str
    changes: list[ChangeKind]
    before: FieldValues
    after: FieldValues
    omitted_keys: list[str]
    node_ids: list[str]


class UndoConflict(Shape):
    """Something that is not reverted, with the reason.

    Without `fieldKey` it is the record as a whole. A record in a database that the caller does not
    see is counted by an entry without ids.
    """

    reason: ConflictReason
    message: str
    record_id: Id | None = None
    database_id: Id | None = None
    title: str | None = None
    field_key: str | None = None
    changed_at: Moment | None = None
    changed_by_user_id: Id | None = None
    run_id: Id | None = None


class OutsideNode(Shape):
    """A node whose effect stays: how often it succeeded, and how often it failed.

    A call that failed may have had its effect. Nodes of an automation that the caller does not see
    have no ids.
    """

    automation_id: Id | None = None
    automation_label: str | None = None
    node_id: str | None = None
    node_kind: str
    succeeded: int
    failed: int


UndoStatus = Literal["preview", "running", "completed", "cancelled"]


class RunUndoShape(Shape):
    """An undo of a run, or the preview of one, which has no id.

    `runs` counts the run and those it called, `records` what they wrote, `reverted` the records
    among them that were reverted. `undoes` is the earlier undo that this one undoes. More than 500
    records are reverted step by step, by the operation over runs that `operationId` names.
    """

    model_config = Shape.model_config | example(
        {
            "id": EXAMPLE_ID,
            "runId": EXAMPLE_ID,
            "status": "completed",
            "runs": 1,
            "records": 3,
            "reverted": 2,
            "conflictCount": 1,
            "createdByUserId": EXAMPLE_ID,
            "createdAt": "2026-01-01T00:00:00.000Z",
            "completedAt": "2026-01-01T00:00:00.000Z",
        }
    )

    id: Id | None = None
    run_id: Id
    undoes: Id | None = None
    operation_id: Id | None = None
    status: UndoStatus
    runs: int
    records: int
    reverted: int
    conflict_count: int
    created_by_user_id: Id
    created_at: Moment
    completed_at: Moment | None = None


class RunUndoDetail(RunUndoShape):
    """An undo with reverted records, conflicts and effects that stay outside, 500 of each at most.

    `writers` are the nodes that wrote records, by the first 10,000 changes of the runs.

    A preview of more than 500 records looks at the first 500; `trimmed` then is true.
    """

    model_config = Shape.model_config | example(
        {
            "id": EXAMPLE_ID,
            "runId": EXAMPLE_ID,
            "status": "completed",
            "runs": 1,
            "records": 1,
            "reverted": 1,
            "conflictCount": 0,
            "createdByUserId": EXAMPLE_ID,
            "createdAt": "2026-01-01T00:00:00.000Z",
            "completedAt": "2026-01-01T00:00:00.000Z",
            "trimmed": False,
            "revertedRecords": [
                {
                    "recordId": EXAMPLE_ID,
                    "databaseId": EXAMPLE_ID,
                    "title": "Invoice 12",
                    "changes": ["updated"],
                    "before": {"status": "paid"},
                    "after": {"status": "open"},
                    "omittedKeys": [],
                    "nodeIds": ["close"],
                }
            ],
            "writers": [{"nodeId": "close", "records": 1, "fieldKeys": ["status"]}],
            "conflicts": [],
            "outside": [{"nodeId": "mail", "nodeKind": "send_email", "succeeded": 1, "failed": 0}],
        }
    )

    trimmed: bool
    reverted_records: list[RevertedRecord]
    writers: list[WritingNode]
    conflicts: list[UndoConflict]
    outside: list[OutsideNode]


class RunUndoList(Listed):
    run_undos: list[RunUndoShape]


_undo = run_undo.c


async def list_undos(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, page: PageRequest
) -> RunUndoList:
    """The undos of a run, newest first. Raises NotFoundError."""
    run = await load_run(work, actor, automation_id, run_id)
    statement = sa.select(run_undo).where(
        _undo.workspace_id == actor.workspace_id, _undo.run_id == run.id
    )
    rows = await page.descending(work, statement, _undo.id, of=RunUndoRow)
    return RunUndoList.of(rows, shown)


async def undo_row(work: UnitOfWork, actor: Actor, run_id: Id, undo_id: Id) -> RunUndoRow:
    """An undo of a run. Raises NotFoundError."""
    return await work.one(
        sa.select(run_undo).where(
            _undo.workspace_id == actor.workspace_id, _undo.run_id == run_id, _undo.id == undo_id
        ),
        "undo",
        of=RunUndoRow,
    )


async def undo_detail(
    work: UnitOfWork, actor: Actor, row: RunUndoRow, run_ids: Collection[Id], *, trimmed: bool
) -> RunUndoDetail:
    """An undo with its records and conflicts; `run_ids` are the runs whose effects stay."""
    changes = await undone_changes(work, actor, row.id, MAX_SHOWN)
    record_ids = {one.record_id for one in changes}
    nodes = await nodes_of_records(work, actor, run_ids, record_ids)
    effects = await outside_effects(work, actor, run_ids, MAX_SHOWN)
    return RunUndoDetail(
        **shown(row).model_dump(),
        trimmed=trimmed,
        reverted_records=_reverted(changes, nodes),
        writers=[*await writing_nodes(work, actor, run_ids)],
        conflicts=await _conflicts(work, actor, row.conflicts[:MAX_SHOWN]),
        outside=outside_nodes(effects),
    )


def outside_nodes(effects: Sequence[OutsideEffect]) -> list[OutsideNode]:
    """Effects on the wire; nodes of hidden automations have no ids."""
    return [
        OutsideNode.model_validate(effect)
        if effect.automation_label is not None
        else OutsideNode(
            node_kind=effect.node_kind, succeeded=effect.succeeded, failed=effect.failed
        )
        for effect in effects
    ]


def _status(row: RunUndoRow) -> UndoStatus:
    if row.completed_at is None:
        return "running"
    return "cancelled" if row.stage == STOPPED else "completed"


def shown(row: RunUndoRow) -> RunUndoShape:
    """An undo on the wire."""
    return RunUndoShape(
        id=row.id,
        run_id=row.run_id,
        undoes=row.undoes_id,
        operation_id=row.operation_id,
        status=_status(row),
        runs=row.runs,
        records=row.records,
        reverted=row.reverted,
        conflict_count=row.conflict_count,
        created_by_user_id=row.actor_user_id,
        created_at=row.created_at,
        completed_at=row.completed_at,
    )


def _reverted(
    changes: Sequence[UndoneChange], nodes: Mapping[Id, Sequence[str]]
) -> list[RevertedRecord]:
    by_record: dict[Id, list[UndoneChange]] = defaultdict(list)
    for one in changes:
        by_record[one.record_id].append(one)
    return [_record(several, nodes.get(id_, ())) for id_, several in by_record.items()]


def _record(changes: Sequence[UndoneChange], nodes: Sequence[str]) -> RevertedRecord:
    before: FieldValues = {}
    after: FieldValues = {}
    omitted: set[str] = set()
    for change in (undone.change for undone in changes):
        omitted.update(change.omitted_keys)
        for values, own in ((before, change.before), (after, change.after)):
            for key, value in (own or {}).items():
                if len(to_json(value)) > MAX_VALUE:
                    omitted.add(key)
                else:
                    values[key] = value
    last = changes[-1]
    return RevertedRecord(
        record_id=last.record_id,
        database_id=last.database_id,
        title=last.title,
        changes=[one.change.kind for one in changes],
        before={key: value for key, value in before.items() if key not in omitted},
        after={key: value for key, value in after.items() if key not in omitted},
        omitted_keys=sorted(omitted),
        node_ids=[*nodes],
    )


MESSAGES: Mapping[ConflictReason, str] = {
    ConflictReason.CHANGED_SINCE: "It was changed after the run.",
    ConflictReason.IN_TRASH: "The record was deleted after the run.",
    ConflictReason.DELETED: "The record no longer exists.",
    ConflictReason.FIELD_DELETED: "The field no longer exists.",
    ConflictReason.FIELD_CONVERTED: "The field was converted to a kind that can't be written.",
    ConflictReason.NOT_KEPT: "The earlier value is too long to be kept in the history.",
    ConflictReason.REFUSED: "The earlier value is no longer valid.",
    ConflictReason.NO_ACCESS: "You can't edit the records of this database.",
    ConflictReason.NOT_VISIBLE: "You don't have access to this part of the data.",
}


def stored_conflict(conflicting: RecordConflict) -> dict[str, Any]:
    """A conflict as the row of an undo keeps it."""
    record_id, database_id, title, conflict = conflicting
    change = conflict.change
    return {
        "reason": conflict.reason.value,
        "message": conflict.message,
        "recordId": str(record_id),
        "databaseId": database_id and str(database_id),
        "title": title,
        "fieldKey": conflict.field_key,
        "changedAt": change and change.at.isoformat(),
        "changedByUserId": change and change.actor_user_id and str(change.actor_user_id),
        "runId": change and change.run_id and str(change.run_id),
    }


async def _conflicts(
    work: UnitOfWork, actor: Actor, stored: Sequence[Mapping[str, Any]]
) -> list[UndoConflict]:
    """Conflicts as far as the actor may see them."""
    named = {Id(one["databaseId"]) for one in stored if one["databaseId"] is not None}
    seen = await seen_labels(work, actor, named) if named else {}
    return [_conflict(one, seen) for one in stored]


def _conflict(one: Mapping[str, Any], seen: Mapping[Id, str]) -> UndoConflict:
    reason = ConflictReason(one["reason"])
    database_id = one["databaseId"] and Id(one["databaseId"])
    if reason is ConflictReason.NOT_VISIBLE and database_id is None:
        return UndoConflict(reason=reason, message=MESSAGES[reason])
    if database_id is not None and database_id not in seen:
        reason = ConflictReason.NOT_VISIBLE
        return UndoConflict(reason=reason, message=MESSAGES[reason])
    changed_at = one["changedAt"]
    return UndoConflict(
        reason=reason,
        message=one["message"] or MESSAGES[reason],
        record_id=Id(one["recordId"]),
        database_id=database_id,
        title=one["title"],
        field_key=one["fieldKey"],
        changed_at=None if changed_at is None else datetime.fromisoformat(changed_at),
        changed_by_user_id=one["changedByUserId"] and Id(one["changedByUserId"]),
        run_id=one["runId"] and Id(one["runId"]),
    )
