"""Operations over runs: previewed, accepted, paused, cancelled, undone, or done at once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.automation.automation_runs.filters import RunFilter
from models.automation.automation_runs.history import outside_effects
from models.automation.automation_runs.queries import RUN, runs_of
from models.automation.automation_runs.retries import count_retried, repeated_effects
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automations import queries as automations
from models.automation.automations.queries import AUTOMATION, VERSION, automation_of, version_of
from models.automation.run_operations import queries, rules
from models.automation.run_operations import selection as run_operation_selection
from models.automation.run_operations.execution import treat_next, undo_id_of
from models.automation.run_operations.queries import RUN_OPERATIONS
from models.automation.run_operations.selection import preview_replay
from models.automation.run_undos import commands as undos
from models.automation.run_undos import queries as run_undo_queries
from models.automation.triggers.event_replays import version_to_replay
from models.automation.waits.commands import check_size
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.data.records.reverts import number_of_written_records
from models.data.records.rules.reverts import Cause
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

SENT = "Resumed runs can't be undone: their events were already sent."
GOES_ON = "The operation is still running. Cancel it before you undo it."
NO_RECORDS = f"The credential lacks the scope {Scope.RECORDS_WRITE.value}, which an undo needs."
UNDONE = "An undo can't be undone. Start a new operation."

_UNDONE_BY: Mapping[str, tuple[rules.OperationAction, JsonObject]] = {
    rules.OperationAction.CANCEL: (
        rules.OperationAction.RETRY,
        {"from": "failed", "version": "original", "again": False},
    ),
    rules.OperationAction.RETRY: (rules.OperationAction.CANCEL, {}),
    rules.OperationAction.UNDO: (rules.OperationAction.UNDO, {}),
    rules.OperationAction.REPLAY: (rules.OperationAction.CANCEL, {}),
}


async def accept_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, body: queries.CreateRunOperation
) -> None:
    """Accept an operation, and start it when this commits; accepted once for an id.

    Raises ValidationError, NotFoundError for an automation that the actor does not see, and
    TooMuchOpenError.
    """
    parameters = await check_operation(work, actor, body)
    selection: JsonObject = {}
    if body.filter is not None:
        selection = {"filter": run_operation_selection.frozen(body.filter, work.now).wire}
    run_ids = body.run_ids
    if body.replay is not None:
        run_ids = body.replay.event_ids
        if body.replay.filter is not None:
            selection = {"events": body.replay.filter.until_at_most(work.now).wire}
    row = {
        "action": body.action.value,
        "selection": selection,
        "parameters": parameters,
        "rate": body.rate,
    }
    operation = await _accept(work, actor, operation_id, row)
    if operation is not None and run_ids is not None:
        count = await run_operation_selection.select_ids(work, operation, run_ids)
        await lifecycle.record_progress(
            work, RUN_OPERATIONS, operation_id, selected=count, total=count
        )


async def check_operation(
    work: UnitOfWork, actor: Actor, body: queries.PreviewRunOperation
) -> JsonObject:
    """The parameters of an operation. Raises ValidationError and NotFoundError."""
    _check_selection(body)
    for name in ("retry", "resume", "replay"):
        if getattr(body, name) is not None and body.action != name:
            raise ValidationError.at(name, f"Only allowed with the action {name}.")
    automation_id = None if body.filter is None else body.filter.automation_id
    if automation_id is not None:
        level = await automations.visible.level(work, actor, automation_id)
        if level < Level.VIEW:
            raise NotFoundError("automation")
    match body.action:
        case rules.OperationAction.RETRY:
            return _stored(body.retry or queries.BulkRetry())
        case rules.OperationAction.RESUME:
            check_size((body.resume or queries.BulkResume()).data, "resume.data")
            return _stored(body.resume or queries.BulkResume())
        case rules.OperationAction.UNDO:
            require_records(actor)
            return {}
        case rules.OperationAction.REPLAY:
            assert body.replay is not None, "it was checked"
            await version_to_replay(work, actor, body.replay)
            terms = {"automation_id", "version", "test"}
            return body.replay.model_dump(mode="json", by_alias=True, include=terms)
        case _:
            return {}


def _check_selection(body: queries.PreviewRunOperation) -> None:
    if body.action is not rules.OperationAction.REPLAY:
        if (body.filter is None) == (body.run_ids is None):
            raise ValidationError.at("", "Set either filter or runIds.")
        return
    if body.filter is not None or body.run_ids is not None or body.replay is None:
        raise ValidationError.at("replay", "Required: events take the place of runs.")
    if (body.replay.filter is None) == (body.replay.event_ids is None):
        raise ValidationError.at("replay", "Set either filter or eventIds.")


def require_records(actor: Actor) -> None:
    """Raises DeniedError for a caller who may not write records, which an undo does."""
    if Scope.RECORDS_WRITE not in actor.scopes:
        raise DeniedError(NO_RECORDS)


def _stored(parameters: queries.BulkRetry | queries.BulkResume) -> JsonObject:
    return parameters.model_dump(mode="json", by_alias=True, exclude_none=True)


async def record_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, values: Mapping[str, Any]
) -> rules.OperationRow | None:
    """Record an operation, which no one executes yet; None when one of this id was before."""
    row = {
        "id": operation_id,
        "workspace_id": actor.workspace_id,
        "actor_user_id": actor.user_id,
        "selection": {},
        "parameters": {},
        **dict.fromkeys(("execution", "selected", "treated", *rules.RunOutcome), 0),
        **values,
    }
    if not await lifecycle.accept(work, RUN_OPERATIONS, row):
        return None
    return await queries.visible_operation(work, actor, operation_id)


async def _accept(
    work: UnitOfWork, actor: Actor, operation_id: Id, values: Mapping[str, Any]
) -> rules.OperationRow | None:
    """Record an operation and its start; None when one of this id was accepted before."""
    operation = await record_operation(work, actor, operation_id, values)
    if operation is not None:
        await _require_place(work, actor)
        await start_execution(work, operation)
    return operation


async def _require_place(work: UnitOfWork, actor: Actor) -> None:
    """Raises TooMuchOpenError."""
    of_workspace = RUN_OPERATIONS.table.c.workspace_id == actor.workspace_id
    await lifecycle.require_place(
        work, actor, RUN_OPERATIONS, WorkflowKind.RUN_OPERATION, of_workspace
    )


async def pause_operation(work: UnitOfWork, actor: Actor, operation_id: Id) -> None:
    """Pause an operation after the runs that it treats now; a paused one stays as it is.

    Raises NotFoundError and OperationEndedError.
    """
    operation = await queries.visible_operation(work, actor, operation_id, lock=True)
    if operation.status == rules.OperationStatus.PAUSED:
        return
    if not await lifecycle.move(work, RUN_OPERATIONS, operation.id, rules.OperationStatus.PAUSED):
        raise rules.OperationEndedError
    await end_execution(work, operation)
    # Its place is free for others.
    work.notify_workers = True


async def resume_operation(work: UnitOfWork, actor: Actor, operation_id: Id) -> None:
    """Continue a paused operation, in an execution of its own.

    Raises NotFoundError, OperationEndedError, NotPausedError and TooMuchOpenError.
    """
    operation = await queries.visible_operation(work, actor, operation_id, lock=True)
    if operation.status in rules.OPEN_OPERATION:
        raise rules.NotPausedError
    values = {"execution": operation.execution + 1, "dispatched_at": None}
    queued = rules.OperationStatus.QUEUED
    if not await lifecycle.move(work, RUN_OPERATIONS, operation.id, queued, **values):
        raise rules.OperationEndedError
    await _require_place(work, actor)
    await start_execution(work, await queries.visible_operation(work, actor, operation_id))


async def cancel_operation(work: UnitOfWork, actor: Actor, operation_id: Id) -> None:
    """Cancel an operation after the runs that it treats now; an ended one stays as it is.

    Raises NotFoundError.
    """
    operation = await queries.visible_operation(work, actor, operation_id, lock=True)
    ended = await end_operation(work, operation, rules.OperationStatus.CANCELLED)
    if ended and operation.status in rules.OPEN_OPERATION:
        await end_execution(work, operation)


async def end_operation(
    work: UnitOfWork,
    operation: rules.OperationRow,
    end: rules.OperationStatus,
    error: str | None = None,
) -> bool:
    """End an operation whose row is held, with the undo that it has begun; False if it was over."""
    ended = await lifecycle.finish(work, RUN_OPERATIONS, [operation.id], end, error=error)
    if ended and operation.action == rules.OperationAction.UNDO:
        await undos.stop_undos(work, operation.id)
    return bool(ended)


async def undo_operation(
    work: UnitOfWork, actor: Actor, operation_id: Id, new_id: Id, body: queries.UndoRunOperation
) -> None:
    """Accept the operation that takes another one back: it cancels what that one started, or
    retries what it cancelled.

    Raises NotFoundError, NotUndoableError and TooMuchOpenError.
    """
    operation = await queries.visible_operation(work, actor, operation_id, lock=True)
    if operation.status in (*rules.OPEN_OPERATION, rules.OperationStatus.PAUSED):
        raise rules.NotUndoableError(GOES_ON)
    if operation.undoes_id is not None:
        raise rules.NotUndoableError(UNDONE)
    if operation.action not in _UNDONE_BY:
        raise rules.NotUndoableError(SENT)
    action, parameters = _UNDONE_BY[operation.action]
    row = {
        "action": action.value,
        "parameters": parameters,
        "rate": body.rate,
        "undoes_id": operation.id,
    }
    await _accept(work, actor, new_id, row)


async def undo_run(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    run_id: Id,
    body: run_undo_queries.UndoRun,
    new_id: Id,
) -> run_undo_queries.RunUndoDetail:
    """The undo of a run, or of an earlier undo of it: done, or begun by an operation; or a preview.

    Raises NotFoundError, NotUndoableRunError, DeniedError and TooMuchOpenError.
    """
    require_records(actor)
    plan = await undos.plan_undo(work, actor, automation_id, run_id, body.undo_id)
    if body.preview:
        return await undos.preview_undo(work, actor, plan, new_id)
    if plan.is_small:
        return await undos.undo_at_once(work, actor, plan, new_id)
    row = {
        "action": rules.OperationAction.UNDO.value,
        "parameters": {} if body.undo_id is None else {"undoId": str(body.undo_id)},
    }
    operation = await _accept(work, actor, new_id, row)
    if operation is not None:
        await run_operation_selection.select_ids(work, operation, [run_id])
        await lifecycle.record_progress(work, RUN_OPERATIONS, new_id, selected=1, total=1)
    undo_id = undo_id_of(new_id, run_id)
    undo = await undos.begin_undo(work, actor, plan, undo_id, new_id)
    return await run_undo_queries.undo_detail(work, actor, undo, plan.run_ids, trimmed=False)


MOST_COUNTED = 100_000
"""Runs that a preview counts."""
MOST_EXAMINED = 10_000
"""Runs whose versions and nodes a preview looks at: the oldest."""
MOST_SEARCHED = 10_000
"""Runs through which a preview searches for what no index answers: the oldest."""
_MOST_LINES = 100


async def preview_operation(
    work: UnitOfWork,
    actor: Actor,
    body: queries.PreviewRunOperation,
    *,
    counted: int = MOST_COUNTED,
    examined: int = MOST_EXAMINED,
) -> queries.RunOperationPreview:
    """The preview of an operation.

    Raises ValidationError, and NotFoundError for an automation that the actor does not see.
    """
    parameters = await check_operation(work, actor, body)
    if body.replay is not None:
        return await preview_replay(work, actor, parameters, body.replay, counted)
    runs = _selected(actor, body, work.now)
    statuses = await _statuses(work, runs, counted)
    total = sum(statuses.values())
    fits = rules.fitting(body.action, parameters)
    applicable = runs.where(RUN.status.in_(fits))
    # Of more runs than are counted, those that fit may all be among the others.
    of_fitting = await _statuses(work, applicable, counted) if total > counted else statuses
    first = (
        applicable.with_only_columns(RUN.id, RUN.automation_id, RUN.automation_version_id)
        .order_by(*run_operation_selection.OLDEST_FIRST)
        .limit(examined)
    )
    versions = await _versions(work, first)
    return queries.RunOperationPreview(
        total=min(total, counted),
        fitting=min(counted, sum(of_fitting.get(status, 0) for status in fits)),
        more=total > counted or await _is_searched_in_part(work, actor, body),
        examined=sum(version.runs for version in versions),
        statuses=statuses,
        retried_before=await _retried(work, first, body.action),
        versions=versions[:_MOST_LINES],
        repeats=await _repeats(work, first, body.action, parameters),
        records=await _records(work, actor, first, body.action),
        outside=await _outside(work, actor, first, body.action),
        redacted_paths=[],
    )


def _selected(actor: Actor, body: queries.PreviewRunOperation, now: datetime) -> sa.Select[Any]:
    runs = run_operation_selection.in_reach(actor, body.action)
    if body.run_ids is not None:
        return runs.where(RUN.id == sa.any_(sa.literal(list(set(body.run_ids)), sa.ARRAY(sa.Uuid))))
    assert body.filter is not None, "it was checked"
    filters = body.filter.filter(now)
    runs = run_operation_selection.candidates(runs, body.filter, filters)
    if not filters.is_searched:
        return runs
    oldest = (
        runs.with_only_columns(RUN.id)
        .order_by(*run_operation_selection.OLDEST_FIRST)
        .limit(MOST_SEARCHED)
    )
    return runs.where(RUN.id.in_(oldest), *filters.searches(RUN))


async def _is_searched_in_part(
    work: UnitOfWork, actor: Actor, body: queries.PreviewRunOperation
) -> bool:
    """True when a search was not made through all runs that it is made through."""
    filters = None if body.filter is None else body.filter.filter(work.now)
    if body.filter is None or filters is None or not filters.is_searched:
        return False
    runs = run_operation_selection.candidates(
        run_operation_selection.in_reach(actor, body.action), body.filter, filters
    )
    more_runs = (
        runs.with_only_columns(RUN.id)
        .order_by(*run_operation_selection.OLDEST_FIRST)
        .offset(MOST_SEARCHED)
        .limit(1)
    )
    return await work.scalar(more_runs) is not None


async def _statuses(work: UnitOfWork, runs: sa.Select[Any], most: int) -> dict[RunStatus, int]:
    """The number of runs of each status, one more than `most` in all where there are more."""
    some = runs.with_only_columns(RUN.status).limit(most + 1).subquery()
    rows = await work.rows(
        sa.select(some.c.status, sa.func.count().label("runs")).group_by(some.c.status)
    )
    return {RunStatus(row.status): row.runs for row in rows}


async def _versions(work: UnitOfWork, runs: sa.Select[Any]) -> list[queries.VersionCount]:
    """The versions of runs, with the number of runs of each, the largest first."""
    picked = runs.subquery("picked")
    counts = (
        sa.select(
            picked.c.automation_id, picked.c.automation_version_id, sa.func.count().label("runs")
        )
        .group_by(picked.c.automation_id, picked.c.automation_version_id)
        .subquery("counts")
    )
    rows = await work.rows(
        sa.select(counts, AUTOMATION.label.label("automation_label"), VERSION.version)
        .join(*automation_of(counts))
        .join(*version_of(counts))
        .order_by(counts.c.runs.desc(), AUTOMATION.label, VERSION.version)
    )
    return [queries.VersionCount.model_validate(row) for row in rows]


async def _retried(work: UnitOfWork, runs: sa.Select[Any], action: rules.OperationAction) -> int:
    return await count_retried(work, runs) if action == rules.OperationAction.RETRY else 0


async def _repeats(
    work: UnitOfWork, runs: sa.Select[Any], action: rules.OperationAction, parameters: JsonObject
) -> Sequence[queries.RepeatedNode]:
    if action != rules.OperationAction.RETRY:
        return []
    only_failed = parameters["from"] == "failed"
    rows = await repeated_effects(work, runs, _MOST_LINES, only_failed=only_failed)
    return [queries.RepeatedNode.model_validate(row) for row in rows]


async def _records(
    work: UnitOfWork, actor: Actor, runs: sa.Select[Any], action: rules.OperationAction
) -> int:
    """The number of records that runs wrote, for an undo of them."""
    if action != rules.OperationAction.UNDO:
        return 0
    run_ids = {row.id for row in await work.rows(runs)}
    return await number_of_written_records(work, actor.workspace_id, Cause(run_ids=run_ids))


async def _outside(
    work: UnitOfWork, actor: Actor, runs: sa.Select[Any], action: rules.OperationAction
) -> list[run_undo_queries.OutsideNode]:
    if action != rules.OperationAction.UNDO:
        return []
    run_ids = {row.id for row in await work.rows(runs)}
    return run_undo_queries.outside_nodes(await outside_effects(work, actor, run_ids, _MOST_LINES))


async def cancel_several(
    work: UnitOfWork, actor: Actor, operation_id: Id, automation_id: Id, body: queries.CancelRuns
) -> queries.CancelledRuns:
    """Cancel the oldest open runs of an automation that fit, with the runs they wait for; bounded,
    so to be called until nothing remains.
    """
    runs = runs_of(actor.workspace_id, automation_id)
    return await _cancel_fitting(work, actor, operation_id, runs, body)


async def cancel_in_workspace(
    work: UnitOfWork, actor: Actor, operation_id: Id, body: queries.CancelRuns
) -> queries.CancelledRuns:
    """The same for the runs of every automation that the actor may edit; an automation in the trash
    still has the runs that were open.
    """
    runs = run_operation_selection.in_reach(actor, rules.OperationAction.CANCEL)
    return await _cancel_fitting(work, actor, operation_id, runs, body)


async def _cancel_fitting(
    work: UnitOfWork, actor: Actor, operation_id: Id, runs: sa.Select[Any], body: queries.CancelRuns
) -> queries.CancelledRuns:
    filters = RunFilter(
        status=None if body.status is None else RunStatus(body.status),
        source=body.source,
        until=body.created_before,
    )
    fitting = runs.with_only_columns(RUN.id).where(*filters.conditions(), RUN.status.in_(OPEN_RUN))
    oldest = await work.rows(
        fitting.order_by(*run_operation_selection.OLDEST_FIRST).limit(body.limit)
    )
    run_ids: Sequence[Id] = []
    if oldest:
        run_ids = await _cancel_now(work, actor, operation_id, [row.id for row in oldest])
    remaining = await work.scalar(sa.select(sa.func.count()).select_from(fitting.subquery()))
    return queries.CancelledRuns(
        cancelled=len(run_ids), run_ids=sorted(run_ids), remaining=remaining
    )


async def _cancel_now(
    work: UnitOfWork, actor: Actor, operation_id: Id, run_ids: Sequence[Id]
) -> Sequence[Id]:
    """Record an operation over these runs and do it; the runs that it cancelled."""
    count = len(run_ids)
    operation = await record_operation(
        work,
        actor,
        operation_id,
        {
            "action": rules.OperationAction.CANCEL,
            "status": rules.OperationStatus.RUNNING,
            "selected": count,
            "total": count,
            "started_at": work.now,
        },
    )
    assert operation is not None, "the id is new"
    await run_operation_selection.select_ids(work, operation, run_ids)
    treated = await treat_next(work, actor, operation, count)
    await lifecycle.finish(work, RUN_OPERATIONS, [operation_id], rules.OperationStatus.SUCCEEDED)
    return [one.run_id for one in treated if one.outcome is rules.RunOutcome.SUCCEEDED]


async def start_execution(
    work: UnitOfWork, operation: rules.OperationRow, restarts: int = 0
) -> None:
    """Have the present execution of an operation started."""
    request: outbox.StartRequest = {
        "summary": "Operation over runs",
        "resourceId": str(operation.workspace_id),
        "source": "api",
        "weight": outbox.AWAITED,
    }
    if operation.execution:
        request["execution"] = str(operation.execution)
    await lifecycle.start(
        work,
        WorkflowKind.RUN_OPERATION,
        operation.workspace_id,
        operation.id,
        request,
        restarts,
    )


async def end_execution(work: UnitOfWork, operation: rules.OperationRow) -> None:
    """Have the present execution of an operation cancelled; one not started yet never is."""
    if await outbox.withdraw_starts(work, [operation.id]):
        return
    await outbox.append(
        work,
        intent=outbox.Intent.CANCEL,
        workflow_kind=WorkflowKind.RUN_OPERATION,
        workspace_id=operation.workspace_id,
        subject_id=operation.id,
        request={"execution": str(operation.execution or "")},
    )


def operation_workflow_id(operation: rules.OperationRow) -> str:
    """The id of the present execution of an operation."""
    return WorkflowKind.RUN_OPERATION.workflow_id(operation.id, str(operation.execution or ""))
