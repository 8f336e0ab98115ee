"""Accepting operations over runs, and pausing, resuming, cancelling and undoing them."""

from collections.abc import Mapping
from typing import Any

from models.automation.automations import queries as automations
from models.automation.run_operations.errors import (
    NotPausedError,
    NotUndoableError,
    OperationEndedError,
)
from models.automation.run_operations.executions import end_execution, start_execution
from models.automation.run_operations.lifecycle import RUN_OPERATIONS
from models.automation.run_operations.queries import visible_operation
from models.automation.run_operations.rows import OperationRow
from models.automation.run_operations.rules import (
    OPEN_OPERATION,
    OperationAction,
    OperationStatus,
    RunOutcome,
)
from models.automation.run_operations.selection import frozen, select_ids
from models.automation.run_operations.shapes import (
    BulkResume,
    BulkRetry,
    CreateRunOperation,
    PreviewRunOperation,
    UndoRunOperation,
)
from models.automation.waits.commands import check_size
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.work_bounds import require_place
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.families import Family

SENT = "What runs were resumed with stays sent. It cannot be taken back."
GOES_ON = "The operation goes on. Cancel it first, then undo what it did."
UNDONE = "An undo is not undone. Make another operation."

_UNDONE_BY: Mapping[str, tuple[OperationAction, JsonObject]] = {
    OperationAction.CANCEL: (
        OperationAction.RETRY,
        {"from": "failed", "version": "original", "again": False},
    ),
    OperationAction.RETRY: (OperationAction.CANCEL, {}),
}


async def accept_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, body: CreateRunOperation
) -> None:
    """Accept an operation, and start it when this commits; accepted once for an id.

    Raises ValidationError, NotFoundError for an automation that the actor does not see, and
    TooMuchOpenError.
    """
    parameters = await check(work, actor, body)
    selection: JsonObject = {}
    if body.filter is not None:
        selection = {"filter": frozen(body.filter, work.now).wire}
    row = {
        "action": body.action.value,
        "selection": selection,
        "parameters": parameters,
        "rate": body.rate,
    }
    operation = await _accept(work, actor, operation_id, row)
    if operation is not None and body.run_ids is not None:
        count = await select_ids(work, operation, body.run_ids)
        await lifecycle.record_progress(
            work, RUN_OPERATIONS, operation_id, selected=count, total=count
        )


async def check(work: UnitOfWork, actor: Actor, body: PreviewRunOperation) -> JsonObject:
    """The parameters of an operation. Raises ValidationError and NotFoundError."""
    if (body.filter is None) == (body.run_ids is None):
        raise ValidationError.at("", "Give either a filter or runIds.")
    for name in ("retry", "resume"):
        if getattr(body, name) is not None and body.action != name:
            raise ValidationError.at(name, f"It is for the action {name} alone.")
    automation_id = None if body.filter is None else body.filter.automation_id
    if automation_id is not None:
        level = await automations.visible.level(work, actor, automation_id)
        if level < Level.VIEW:
            raise NotFoundError("automation")
    match body.action:
        case OperationAction.RETRY:
            return _stored(body.retry or BulkRetry())
        case OperationAction.RESUME:
            check_size((body.resume or BulkResume()).data, "resume.data")
            return _stored(body.resume or BulkResume())
        case _:
            return {}


def _stored(parameters: BulkRetry | BulkResume) -> JsonObject:
    return parameters.model_dump(mode="json", by_alias=True, exclude_none=True)


async def record_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, values: Mapping[str, Any]
) -> OperationRow | None:
    """Record an operation, which nobody executes yet; None when one of this id was before."""
    row = {
        "id": operation_id,
        "workspace_id": actor.workspace_id,
        "actor_user_id": actor.user_id,
        "selection": {},
        "parameters": {},
        **dict.fromkeys(("execution", "selected", "treated", *RunOutcome), 0),
        **values,
    }
    if not await lifecycle.accept(work, RUN_OPERATIONS, row):
        return None
    return await visible_operation(work, actor, operation_id)


async def _accept(
    work: UnitOfWork, actor: Actor, operation_id: Id, values: Mapping[str, Any]
) -> OperationRow | None:
    """Record an operation and its start; None when one of this id was accepted before."""
    operation = await record_operation(work, actor, operation_id, values)
    if operation is not None:
        await _require_place(work, actor)
        await start_execution(work, operation)
    return operation


async def _require_place(work: UnitOfWork, actor: Actor) -> None:
    """Raises TooMuchOpenError."""
    of_workspace = RUN_OPERATIONS.table.c.workspace_id == actor.workspace_id
    await require_place(work, actor, RUN_OPERATIONS, Family.RUN_OPERATION, of_workspace)


async def pause_operation(work: UnitOfWork, actor: Actor, operation_id: Id) -> None:
    """Pause an operation after the runs that it treats now; a paused one stays as it is.

    Raises NotFoundError and OperationEndedError.
    """
    operation = await visible_operation(work, actor, operation_id, lock=True)
    if operation.status == OperationStatus.PAUSED:
        return
    if not await lifecycle.move(work, RUN_OPERATIONS, operation.id, OperationStatus.PAUSED):
        raise OperationEndedError
    await end_execution(work, operation)
    # Its place is free for others.
    work.notify_workers = True


async def resume_operation(work: UnitOfWork, actor: Actor, operation_id: Id) -> None:
    """Let a paused operation go on, in an execution of its own.

    Raises NotFoundError, OperationEndedError, NotPausedError and TooMuchOpenError.
    """
    operation = await visible_operation(work, actor, operation_id, lock=True)
    if operation.status in OPEN_OPERATION:
        raise NotPausedError
    values = {"execution": operation.execution + 1, "dispatched_at": None}
    queued = OperationStatus.QUEUED
    if not await lifecycle.move(work, RUN_OPERATIONS, operation.id, queued, **values):
        raise OperationEndedError
    await _require_place(work, actor)
    await start_execution(work, await visible_operation(work, actor, operation_id))


async def cancel_operation(work: UnitOfWork, actor: Actor, operation_id: Id) -> None:
    """Cancel an operation after the runs that it treats now; an ended one stays as it is.

    Raises NotFoundError.
    """
    operation = await visible_operation(work, actor, operation_id, lock=True)
    ended = await lifecycle.finish(work, RUN_OPERATIONS, [operation.id], OperationStatus.CANCELLED)
    if ended and operation.status in OPEN_OPERATION:
        await end_execution(work, operation)


async def undo_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, new_id: Id, body: UndoRunOperation
) -> None:
    """Accept the operation that takes another one back: it cancels what that one started, or
    retries what it cancelled.

    Raises NotFoundError, NotUndoableError and TooMuchOpenError.
    """
    operation = await visible_operation(work, actor, operation_id, lock=True)
    if operation.status in (*OPEN_OPERATION, OperationStatus.PAUSED):
        raise NotUndoableError(GOES_ON)
    if operation.undoes_id is not None:
        raise NotUndoableError(UNDONE)
    if operation.action not in _UNDONE_BY:
        raise NotUndoableError(SENT)
    action, parameters = _UNDONE_BY[operation.action]
    row = {
        "action": action.value,
        "parameters": parameters,
        "rate": body.rate,
        "undoes_id": operation.id,
    }
    await _accept(work, actor, new_id, row)
