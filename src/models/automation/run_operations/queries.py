"""Operations over runs: their tables, their shapes on the wire, and reading them."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.automation.automation_runs.filters import WorkspaceRunQuery
from models.automation.automation_runs.queries import RUN, workspace_runs
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automations.queries import AUTOMATION
from models.automation.inbox.queries import EventQuery
from models.automation.run_operations import rules
from models.automation.run_undos.queries import OutsideNode
from models.automation.triggers.event_replays import ReplayEvent
from models.core import base as core_base
from models.core.access.rules import MANAGERS, Actor, Level
from models.core.lifecycle.commands import WorkTable, indexes_of_work
from models.core.lifecycle.lost_workers import with_worker_wait
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.purging import MAX_ROWS, purge
from models.core.values import InputMoment
from runtime.database import UnitOfWork
from runtime.ids import least_id
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


class RunOperation(SQLModel, table=True):
    """One operation over runs of a workspace.

    `selection` is the filter or the source of its runs, `parameters` what is done to each. Runs
    are written down as results first; `total` is null until all are. Those up to the position
    `treated` have an outcome. `execution` counts the times it went on after a pause.
    """

    __tablename__ = "run_operation"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("action", rules.OperationAction),
        one_of("status", rules.OperationStatus),
        *indexes_of_work("run_operation", rules.OPEN_OPERATION),
    )

    id: core_base.Id = TableField(primary_key=True)
    workspace_id: core_base.Id
    actor_user_id: core_base.Id
    action: str
    status: str
    selection: dict[str, Any] = TableField(sa_type=JSONB)
    parameters: dict[str, Any] = TableField(sa_type=JSONB)
    rate: float | None = None
    undoes_id: core_base.Id | None = None
    execution: int
    selected: int
    total: int | None = None
    treated: int
    succeeded: int
    skipped: int
    failed: int
    paced_until: datetime | None = TableField(default=None, sa_type=Timestamp)
    error: str | None = None
    created_at: datetime = TableField(sa_type=Timestamp)
    dispatched_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    started_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    completed_at: datetime | None = TableField(default=None, sa_type=Timestamp)


class RunOperationResult(SQLModel, table=True):
    """One run of an operation, in the order in which they are treated; without outcome until then.

    `run_id` refers to nothing: a client may name any id, and runs are purged on their own.
    """

    __tablename__ = "run_operation_result"
    __table_args__ = (
        same_workspace("operation_id", "run_operation.id"),
        sa.UniqueConstraint("operation_id", "run_id"),
        one_of("outcome", rules.RunOutcome),
        sa.Index(
            "ix_run_operation_result_outcome",
            *("operation_id", "outcome", "position"),
            postgresql_where=sa.text("outcome IN ('skipped', 'failed')"),
        ),
    )

    operation_id: core_base.Id = TableField(primary_key=True)
    position: int = TableField(primary_key=True)
    workspace_id: core_base.Id
    run_id: core_base.Id
    outcome: str | None = None
    reason: str | None = None
    new_run_id: core_base.Id | None = None


run_operation = table_of(RunOperation)
run_operation_result = table_of(RunOperationResult)

RUN_OPERATIONS = WorkTable(
    run_operation, rules.OPERATION_LIFECYCLE, workflow_kind=WorkflowKind.RUN_OPERATION
)

_operation = run_operation.c


async def purge_operations(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove operations that ended before a moment, or were paused since they were older.

    Returns the number of removed rows, at most `limit`; call it until that is 0.
    """
    old = (
        sa.select(_operation.id)
        .where(
            # Accepted before it ended: the oldest ids are all that is looked at.
            _operation.id < least_id(before),
            _operation.status.not_in(rules.OPEN_OPERATION),
            sa.or_(
                _operation.completed_at < before,
                _operation.status == rules.OperationStatus.PAUSED,
            ),
        )
        .order_by(_operation.id)
    )
    return await purge(work, run_operation, old, limit)


class BulkRetry(core_base.Input):
    """The place at which retries begin, and their version: that of then, or of now, or a named one.

    A run that has been retried before is left alone unless `again` is set.
    """

    from_: Annotated[Literal["failed", "start"], Field(alias="from")] = "failed"
    version: Literal["original", "published"] = "original"
    automation_version_id: core_base.InputId | None = None
    again: bool = False


class BulkResume(core_base.Input):
    """The event that waiting nodes are given: all of a run that wait for one, or the node named."""

    node_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    data: core_base.JsonObject = Field(default_factory=dict)


class BulkReplay(ReplayEvent):
    """The events that are replayed for an automation, by `filter` or by `eventIds`."""

    model_config = core_base.example(
        {"automationId": core_base.EXAMPLE_ID, "filter": {"outcome": "filtered"}}
    )

    filter: EventQuery | None = None
    event_ids: (
        Annotated[list[core_base.InputId], Field(min_length=1, max_length=rules.MAX_IDS)] | None
    ) = None


class PreviewRunOperation(core_base.Input):
    """Body of preview run operation: an action, and the runs, by `filter` or by `runIds`.

    The action `replay` takes events instead, in `replay`.
    """

    model_config = core_base.example(
        {"action": "retry", "filter": {"status": "failed"}, "retry": {"from": "failed"}}
    )

    action: rules.OperationAction
    filter: WorkspaceRunQuery | None = None
    run_ids: (
        Annotated[list[core_base.InputId], Field(min_length=1, max_length=rules.MAX_IDS)] | None
    ) = None
    retry: BulkRetry | None = None
    resume: BulkResume | None = None
    replay: BulkReplay | None = None


class CreateRunOperation(PreviewRunOperation):
    """Body of create run operation; `rate` bounds the runs that it changes in a second."""

    model_config = core_base.example(
        {"action": "retry", "filter": {"status": "failed"}, "retry": {"from": "failed"}, "rate": 5}
    )

    rate: Annotated[float, Field(ge=rules.MIN_RATE, le=rules.MAX_RATE)] | None = None


class UndoRunOperation(core_base.Input):
    """Body of undo run operation; `rate` as in create run operation."""

    model_config = core_base.example({})

    rate: Annotated[float, Field(ge=rules.MIN_RATE, le=rules.MAX_RATE)] | None = None


class VersionCount(core_base.Shape):
    """The runs of one version of an automation among those selected."""

    automation_id: core_base.Id
    automation_label: str
    automation_version_id: core_base.Id
    version: int
    runs: int


class RepeatedNode(core_base.Shape):
    """A node whose effect outside succeeded and would be repeated, and in how many runs."""

    automation_id: core_base.Id
    automation_label: str
    node_id: str
    node_kind: str
    runs: int


class RunOperationPreview(core_base.Shape):
    """The runs that an operation would select now, and what it would do.

    `total` counts the selected runs, `fitting` those whose status the action applies to; with
    `more` there are more than it counts. `retriedBefore`, `versions` and `repeats` are of the
    first `examined` fitting runs; the last two hold the largest hundred of each. So are, for an
    undo, `records`, the number of records that these runs wrote, and `outside`, the nodes whose
    effects stay. The runs that they called are undone with them, and are not looked at.

    A replay counts events, and of a filter the events before `until`. Of the newest `examined`, the
    payloads of `redacted` lack values that look like secrets, at `redactedPaths`, 20 at most.
    """

    total: int
    fitting: int
    more: bool
    examined: int
    retried_before: int
    statuses: dict[RunStatus, int]
    versions: list[VersionCount]
    repeats: list[RepeatedNode]
    records: int
    outside: list[OutsideNode]
    until: core_base.Moment | None = None
    redacted: int = 0
    redacted_paths: Annotated[list[str], Field(default_factory=list)]


class RunOperationShape(core_base.Shape):
    """One operation over runs.

    `total` is absent while runs are being selected; `done` of them have an outcome. `undoes` names
    the operation that this one undoes.
    """

    model_config = core_base.Shape.model_config | core_base.example(
        {
            "id": core_base.EXAMPLE_ID,
            "action": "retry",
            "status": "running",
            "filter": {"status": "failed"},
            "retry": {"from": "failed", "version": "original", "again": False},
            "total": 250,
            "done": 120,
            "succeeded": 118,
            "skipped": 2,
            "failed": 0,
            "createdByUserId": core_base.EXAMPLE_ID,
            "createdAt": "2026-01-01T00:00:00.000Z",
            "startedAt": "2026-01-01T00:00:00.100Z",
        }
    )

    id: core_base.Id
    action: rules.OperationAction
    status: rules.OperationStatus
    waiting_for_worker_since: core_base.Moment | None = None
    filter: Annotated[core_base.JsonObject, documented_as("WorkspaceRunQuery")] | None = None
    retry: Annotated[core_base.JsonObject, documented_as("BulkRetry")] | None = None
    resume: Annotated[core_base.JsonObject, documented_as("BulkResume")] | None = None
    replay: Annotated[core_base.JsonObject, documented_as("BulkReplay")] | None = None
    rate: float | None = None
    undoes: core_base.Id | None = None
    undoable: bool = False
    total: int | None = None
    done: int
    succeeded: int
    skipped: int
    failed: int
    error: str | None = None
    created_by_user_id: core_base.Id
    created_at: core_base.Moment
    started_at: core_base.Moment | None = None
    completed_at: core_base.Moment | None = None


class RunOperationList(Listed):
    run_operations: list[RunOperationShape]


class RunResult(core_base.Shape):
    """One run of an operation; `newRunId` is the run that runs it again, or did before.

    Of a replay, `runId` is the id of the event.
    """

    run_id: core_base.Id
    outcome: rules.RunOutcome | None = None
    reason: str | None = None
    new_run_id: core_base.Id | None = None


class RunResultList(Listed):
    """A page of results in the order in which runs are treated."""

    results: list[RunResult]


class CancelRuns(core_base.Input):
    """Body of the bulk cancel: which open runs, the oldest first, and how many at most."""

    model_config = core_base.example({"status": "waiting", "source": "schedule", "limit": 100})

    status: Literal["queued", "running", "waiting"] | None = None
    source: RunSource | None = None
    created_before: InputMoment | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 500


class CancelledRuns(core_base.Shape):
    """The result of a bulk cancel; `remaining` open runs fit it still."""

    cancelled: int
    run_ids: list[core_base.Id]
    remaining: int


_result = run_operation_result.c


async def visible_operation(
    work: UnitOfWork, actor: Actor, operation_id: core_base.Id, *, lock: bool = False
) -> rules.OperationRow:
    """An operation of the actor's own; owners and administrators see everyone's.

    Raises NotFoundError.
    """
    statement = _visible(actor).where(_operation.id == operation_id)
    if lock:
        statement = statement.with_for_update()
    return await work.one(statement, "operation", of=rules.OperationRow)


def _visible(actor: Actor) -> sa.Select[Any]:
    statement = sa.select(run_operation).where(_operation.workspace_id == actor.workspace_id)
    if actor.role not in MANAGERS:
        statement = statement.where(_operation.actor_user_id == actor.user_id)
    return statement


async def operation_detail(
    work: UnitOfWork, actor: Actor, operation_id: core_base.Id
) -> RunOperationShape:
    """One operation, as the actor sees it. Raises NotFoundError."""
    row = await visible_operation(work, actor, operation_id)
    return await with_worker_wait(work, shown(row), is_open=row.status in rules.OPEN_OPERATION)


async def list_operations(work: UnitOfWork, actor: Actor, page: PageRequest) -> RunOperationList:
    """The operations that the actor sees, newest first."""
    rows = await page.descending(work, _visible(actor), _operation.id, of=rules.OperationRow)
    return RunOperationList.of(rows, shown)


async def list_results(
    work: UnitOfWork,
    actor: Actor,
    operation_id: core_base.Id,
    page: PageRequest,
    outcome: rules.RunOutcome | None = None,
) -> RunResultList:
    """The runs of an operation in the order in which they are treated. Raises NotFoundError."""
    operation = await visible_operation(work, actor, operation_id)
    statement = sa.select(run_operation_result).where(
        _result.workspace_id == actor.workspace_id, _result.operation_id == operation.id
    )
    if outcome is not None:
        statement = statement.where(_result.outcome == outcome)
    rows = await page.ascending(work, statement, _result.position, of=Any)
    return RunResultList.of(rows)


async def automation_labels(
    work: UnitOfWork, actor: Actor, run_ids: Collection[core_base.Id]
) -> Mapping[core_base.Id, str]:
    """The names of the automations of runs, as far as the actor sees them."""
    runs = workspace_runs(actor, Level.VIEW).with_only_columns(RUN.id, AUTOMATION.label)
    these = RUN.id == sa.any_(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid)))
    joined = runs.join(AUTOMATION.id.table, AUTOMATION.id == RUN.automation_id)
    return {row.id: row.label for row in await work.rows(joined.where(these))}


def shown(row: rules.OperationRow) -> RunOperationShape:
    """An operation on the wire."""
    wanted = row.selection.get("filter")
    return RunOperationShape(
        id=row.id,
        action=rules.OperationAction(row.action),
        status=rules.OperationStatus(row.status),
        filter=wanted,
        retry=row.parameters if row.action == rules.OperationAction.RETRY else None,
        resume=row.parameters if row.action == rules.OperationAction.RESUME else None,
        replay=_replay(row) if row.action == rules.OperationAction.REPLAY else None,
        rate=row.rate,
        undoes=row.undoes_id,
        undoable=is_undoable(row),
        total=row.total,
        done=row.treated,
        succeeded=row.succeeded,
        skipped=row.skipped,
        failed=row.failed,
        error=row.error,
        created_by_user_id=row.actor_user_id,
        created_at=row.created_at,
        started_at=row.started_at,
        completed_at=row.completed_at,
    )


def _replay(row: rules.OperationRow) -> core_base.JsonObject:
    events = row.selection.get("events")
    return row.parameters if events is None else {**row.parameters, "filter": events}


def is_undoable(row: rules.OperationRow) -> bool:
    """True for an ended operation whose effects another one can revert."""
    ended = row.status not in (*rules.OPEN_OPERATION, rules.OperationStatus.PAUSED)
    reversible = row.action != rules.OperationAction.RESUME and row.undoes_id is None
    return ended and reversible and row.succeeded > 0
