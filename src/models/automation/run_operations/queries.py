"""Reading operations over runs and their results. Every query names the workspace."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ARRAY, Select, Uuid, any_, literal, select

from models.automation.automation_runs.joins import RUN
from models.automation.automation_runs.queries import workspace_runs
from models.automation.automations.joins import AUTOMATION
from models.automation.run_operations.rows import OperationRow
from models.automation.run_operations.rules import (
    OPEN_OPERATION,
    OperationAction,
    OperationStatus,
    RunOutcome,
)
from models.automation.run_operations.shapes import (
    RunOperationList,
    RunOperationShape,
    RunResult,
    RunResultList,
)
from models.automation.run_operations.tables import run_operation, run_operation_result
from models.core.access.rules import MANAGERS, Actor, Level
from models.core.base import Id
from models.core.lifecycle.workers import with_worker_wait
from models.core.pagination import PageRequest
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

_operation = run_operation.c
_result = run_operation_result.c


async def visible_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, *, lock: bool = False
) -> OperationRow:
    """An operation of the actor's own; owners and administrators see everybody's.

    Raises NotFoundError.
    """
    statement = _visible(actor).where(_operation.id == operation_id)
    if lock:
        statement = statement.with_for_update()
    row = await work.first(statement, of=OperationRow)
    if row is None:
        raise NotFoundError("operation")
    return row


def _visible(actor: Actor) -> Select[Any]:
    statement = select(run_operation).where(_operation.workspace_id == actor.workspace_id)
    if actor.role not in MANAGERS:
        statement = statement.where(_operation.actor_user_id == actor.user_id)
    return statement


async def operation_detail(work: UnitOfWork, actor: Actor, operation_id: Id) -> RunOperationShape:
    """One operation, as the actor sees it. Raises NotFoundError."""
    row = await visible_operation(work, actor, operation_id)
    return await with_worker_wait(work, shown(row), is_open=row.status in OPEN_OPERATION)


async def list_operations(work: UnitOfWork, actor: Actor, page: PageRequest) -> RunOperationList:
    """The operations that the actor sees, newest first."""
    rows = await page.descending(work, _visible(actor), _operation.id, of=OperationRow)
    return RunOperationList(run_operations=[shown(row) for row in rows.items], cursor=rows.cursor)


async def list_results(
    work: UnitOfWork,
    actor: Actor,
    operation_id: Id,
    page: PageRequest,
    outcome: RunOutcome | None = None,
) -> RunResultList:
    """The runs of an operation in the order in which they are treated. Raises NotFoundError."""
    operation = await visible_operation(work, actor, operation_id)
    statement = select(run_operation_result).where(
        _result.workspace_id == actor.workspace_id, _result.operation_id == operation.id
    )
    if outcome is not None:
        statement = statement.where(_result.outcome == outcome)
    rows = await page.ascending(work, statement, _result.position, of=Any)
    return RunResultList(
        results=[RunResult.model_validate(row) for row in rows.items], cursor=rows.cursor
    )


async def automation_labels(
    work: UnitOfWork, actor: Actor, run_ids: Collection[Id]
) -> Mapping[Id, str]:
    """The names of the automations of runs, as far as the actor sees them."""
    runs = workspace_runs(actor, Level.VIEW).with_only_columns(RUN.id, AUTOMATION.label)
    these = RUN.id == any_(literal(list(run_ids), ARRAY(Uuid)))
    joined = runs.join(AUTOMATION.id.table, AUTOMATION.id == RUN.automation_id)
    return {row.id: row.label for row in await work.rows(joined.where(these))}


def shown(row: OperationRow) -> RunOperationShape:
    """An operation on the wire."""
    wanted = row.selection.get("filter")
    return RunOperationShape(
        id=row.id,
        action=OperationAction(row.action),
        status=OperationStatus(row.status),
        filter=wanted,
        retry=row.parameters if row.action == OperationAction.RETRY else None,
        resume=row.parameters if row.action == OperationAction.RESUME else None,
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


def is_undoable(row: OperationRow) -> bool:
    """True for an ended operation that did something which another one can take back."""
    ended = row.status not in (*OPEN_OPERATION, OperationStatus.PAUSED)
    reversible = row.action != OperationAction.RESUME and row.undoes_id is None
    return ended and reversible and row.succeeded > 0
