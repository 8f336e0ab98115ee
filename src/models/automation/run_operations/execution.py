"""The execution of an operation: its runs are treated one transaction for each chunk."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automation_runs import retries
from models.automation.automation_runs.open_runs import cancel_runs
from models.automation.automation_runs.queries import RUN
from models.automation.run_operations import queries, rules, selection
from models.automation.run_undos.commands import UndoPlan, advance_undo, begin_undo, plan_undo
from models.automation.run_undos.rules import AT_ONCE, NotUndoableRunError, RunUndoRow
from models.automation.waits.commands import give_event
from models.core.access.rules import Actor, Principal, PrincipalType, Scope
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.people.members import role_of
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import DeniedError, PlatformError, UnavailableError
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

NOTHING = "The run wrote no records, or they were reverted before."
CONFLICTS = "{reverted} records reverted, {conflicts} conflicts."


def undo_id_of(operation_id: Id, run_id: Id) -> Id:
    """The id of the undo that an operation makes of a run."""
    return derived_id(operation_id, run_id)


async def undo_runs(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    """Undo the first of these runs, as far as the records of one transaction carry.

    A run with more records is begun and not among the outcomes: the next transaction continues it.
    """
    automations = await _automations(work, actor, operation, run_ids)
    treated: list[rules.Treated] = []
    records = 0
    for run_id in run_ids:
        if run_id not in automations:
            treated.append(rules.Treated(run_id, rules.RunOutcome.SKIPPED, rules.UNKNOWN))
            continue
        try:
            async with work.savepoint():
                plan = await _plan(work, actor, operation, automations[run_id], run_id)
                if records and records + plan.records > AT_ONCE:
                    break
                row = await _advanced(work, actor, operation, plan)
        except UnavailableError:
            raise
        except NotUndoableRunError as error:
            treated.append(rules.Treated(run_id, rules.RunOutcome.SKIPPED, rules.reason_of(error)))
            continue
        except PlatformError as error:
            treated.append(rules.Treated(run_id, rules.RunOutcome.FAILED, rules.reason_of(error)))
            continue
        if row.completed_at is None:
            break
        records += plan.records
        treated.append(_outcome(run_id, row))
    return treated


async def _automations(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> Mapping[Id, Id]:
    """The automations of the runs in reach, by run."""
    runs = selection.in_reach(actor, operation.action).with_only_columns(RUN.id, RUN.automation_id)
    these = RUN.id == sa.any_(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid)))
    return {row.id: row.automation_id for row in await work.rows(runs.where(these))}


async def _plan(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, automation_id: Id, run_id: Id
) -> UndoPlan:
    undoes: str | None = operation.parameters.get("undoId")
    undoes_id = None if undoes is None else Id(undoes)
    if operation.undoes_id is not None and operation.action == rules.OperationAction.UNDO:
        undoes_id = undo_id_of(operation.undoes_id, run_id)
    return await plan_undo(work, actor, automation_id, run_id, undoes_id)


async def _advanced(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, plan: UndoPlan
) -> RunUndoRow:
    """The undo after the next step; a small one after all of them."""
    undo_id = undo_id_of(operation.id, plan.run.id)
    row = await begin_undo(work, actor, plan, undo_id, operation.id)
    while row.completed_at is None:
        row = await advance_undo(work, actor, plan, row)
        if not plan.is_small:
            break
    return row


def _outcome(run_id: Id, row: RunUndoRow) -> rules.Treated:
    if not row.reverted and not row.conflict_count:
        return rules.Treated(run_id, rules.RunOutcome.SKIPPED, NOTHING)
    reason = None
    if row.conflict_count:
        reason = CONFLICTS.format(reverted=row.reverted, conflicts=row.conflict_count)
    outcome = rules.RunOutcome.SUCCEEDED if row.reverted else rules.RunOutcome.SKIPPED
    return rules.Treated(run_id, outcome, reason)


LEFT = "The requester can no longer edit automations."

_result = queries.run_operation_result.c
_ROWS = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("outcomes", type_=sa.Text), JSONB))
    .table_valued(
        sa.column("position", sa.Integer),
        sa.column("outcome", sa.Text),
        sa.column("reason", sa.Text),
        sa.column("new_run_id", sa.Uuid),
    )
    .render_derived(name="treated", with_types=True)
)
_OUTCOMES = (
    sa.update(queries.run_operation_result)
    .where(
        _result.operation_id == sa.bindparam("operation", type_=sa.Uuid),
        _result.position == _ROWS.c.position,
    )
    .values(outcome=_ROWS.c.outcome, reason=_ROWS.c.reason, new_run_id=_ROWS.c.new_run_id)
)


@dataclass(frozen=True, slots=True)
class Advance:
    """The state after a transaction: over, or to continue after a pause in seconds."""

    over: bool = False
    pause: float = 0


async def advance(work: UnitOfWork, operation: rules.OperationRow) -> Advance:
    """Do the next part of an operation whose row is held.

    Raises DeniedError when its requester may not act on automations any more.
    """
    actor = await actor_of(work, operation)
    if operation.status == rules.OperationStatus.QUEUED:
        await lifecycle.move(
            work,
            queries.RUN_OPERATIONS,
            operation.id,
            rules.OperationStatus.RUNNING,
            started_at=operation.started_at or work.now,
        )
    if operation.total is None:
        await _select(work, actor, operation)
        return Advance()
    if operation.treated < operation.total:
        pause = await _wait(work, operation)
        if pause > 0:
            return Advance(pause=pause)
        treated = await treat_next(work, actor, operation, rules.chunk_of(operation.rate))
        if operation.treated + len(treated) < operation.total:
            return Advance()
    await lifecycle.finish(
        work, queries.RUN_OPERATIONS, [operation.id], rules.OperationStatus.SUCCEEDED
    )
    return Advance(over=True)


async def actor_of(work: UnitOfWork, operation: rules.OperationRow) -> Actor:
    """The asker of an operation, with the rights they have now. Raises DeniedError."""
    role = await role_of(work, operation.workspace_id, operation.actor_user_id)
    principal = Principal(
        type=PrincipalType.SYSTEM, id=operation.id, user_id=operation.actor_user_id
    )
    scopes = frozenset() if role is None else principal.usable_scopes(role)
    if role is None or Scope.AUTOMATIONS_WRITE not in scopes:
        raise DeniedError(LEFT)
    return Actor(principal=principal, workspace_id=operation.workspace_id, role=role, scopes=scopes)


async def _select(work: UnitOfWork, actor: Actor, operation: rules.OperationRow) -> None:
    of_events = operation.action == rules.OperationAction.REPLAY
    select_next = selection.select_events if of_events else selection.select_more
    count, selected_until, last = await select_next(work, actor, operation)
    selected = operation.selected + count
    await lifecycle.record_progress(
        work,
        queries.RUN_OPERATIONS,
        operation.id,
        selected=selected,
        selection=selected_until,
        total=selected if last else None,
    )


async def _wait(work: UnitOfWork, operation: rules.OperationRow) -> float:
    """Seconds until the next runs may be treated, by the rate and by the room for starts."""
    if operation.paced_until is not None and operation.paced_until > work.now:
        return (operation.paced_until - work.now).total_seconds()
    if operation.action in rules.STARTING:
        waiting = await outbox.waiting_starts(
            work, operation.workspace_id, WorkflowKind.AUTOMATION_RUN, outbox.MOST_WAITING_STARTS
        )
        return rules.ROOM_PAUSE if waiting >= outbox.MOST_WAITING_STARTS else 0
    return 0


async def treat_next(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, count: int
) -> Sequence[rules.Treated]:
    """Treat the next runs of an operation, and write their outcomes."""
    positions = rules.turns(operation, count)
    rows = await work.rows(
        sa.select(_result.run_id, _result.position).where(
            _result.operation_id == operation.id, _result.position.in_(positions)
        )
    )
    by_position = {row.position: row.run_id for row in rows}
    run_ids = [by_position[position] for position in positions]
    treated = await treat(work, actor, operation, run_ids)
    await _write(work, operation, positions, treated)
    return treated


async def _write(
    work: UnitOfWork,
    operation: rules.OperationRow,
    positions: Sequence[int],
    treated: Sequence[rules.Treated],
) -> None:
    outcomes = [
        {
            "position": position,
            "outcome": result.outcome,
            "reason": result.reason,
            "new_run_id": result.new_run_id,
        }
        for position, result in zip(positions, treated, strict=False)
    ]
    await work.execute(
        _OUTCOMES, {"operation": operation.id, "outcomes": to_json(outcomes).decode()}
    )
    counts = Counter(result.outcome for result in treated)
    await lifecycle.record_progress(
        work,
        queries.RUN_OPERATIONS,
        operation.id,
        treated=operation.treated + len(treated),
        succeeded=operation.succeeded + counts[rules.RunOutcome.SUCCEEDED],
        skipped=operation.skipped + counts[rules.RunOutcome.SKIPPED],
        failed=operation.failed + counts[rules.RunOutcome.FAILED],
        # Where there was nothing to do, nothing has to wait.
        paced_until=_next_moment(work, operation, counts[rules.RunOutcome.SUCCEEDED]),
    )


def _next_moment(work: UnitOfWork, operation: rules.OperationRow, count: int) -> datetime | None:
    """The moment from which on the rate allows more runs."""
    if operation.rate is None:
        return None
    begin = max(work.now, operation.paced_until or work.now)
    return begin + timedelta(seconds=count / operation.rate)


ENDED = "The run has already ended."
NOT_WAITING = "The run is not waiting for an event."

Treat = Callable[
    [UnitOfWork, Actor, rules.OperationRow, Sequence[Id]], Awaitable[Sequence[rules.Treated]]
]


async def treat(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    """Treat these runs, the first of them at least, in their order."""
    return await _ACTIONS[operation.action](work, actor, operation, run_ids)


async def _cancel(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    reach = await _reached(work, actor, operation, run_ids)
    cancelled = set(await cancel_runs(work, actor.workspace_id, sorted(reach)))
    return [
        rules.Treated(run_id, rules.RunOutcome.SUCCEEDED)
        if run_id in cancelled
        else _skipped(run_id, ENDED if run_id in reach else rules.UNKNOWN)
        for run_id in run_ids
    ]


async def _retry(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    body = queries.BulkRetry.model_validate(operation.parameters, strict=False)
    terms = retries.BulkTerms(
        operation_id=operation.id,
        begin=body.from_,
        published=body.version == "published",
        version_id=body.automation_version_id,
        again=body.again,
    )
    reach = selection.in_reach(actor, operation.action)
    answer = await retries.retry_several(work, actor, reach, run_ids, terms)
    return [
        rules.Treated(run_id, rules.RunOutcome.SUCCEEDED, new_run_id=answer.new_ids[run_id])
        if run_id in answer.new_ids
        else _refused(run_id, answer.refusals)
        for run_id in answer.treated
    ]


async def _resume(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    body = queries.BulkResume.model_validate(operation.parameters, strict=False)
    reach = await _reached(work, actor, operation, run_ids)
    answers = await give_event(work, actor, sorted(reach), body.node_id, body.data)
    return [_resumed(run_id, run_id in reach, answers) for run_id in run_ids]


def _resumed(
    run_id: Id, reached: bool, answers: Mapping[Id, PlatformError | None]
) -> rules.Treated:
    if not reached:
        return _skipped(run_id, rules.UNKNOWN)
    if run_id not in answers:
        return _skipped(run_id, NOT_WAITING)
    error = answers[run_id]
    if error is None:
        return rules.Treated(run_id, rules.RunOutcome.SUCCEEDED)
    return rules.Treated(run_id, rules.RunOutcome.FAILED, rules.reason_of(error))


def _refused(run_id: Id, refusals: Mapping[Id, PlatformError]) -> rules.Treated:
    error = refusals.get(run_id)
    if error is None:
        return _skipped(run_id, rules.UNKNOWN)
    if isinstance(error, retries.NotRetriableError):
        replay = error.run_id if isinstance(error, retries.RetriedBeforeError) else None
        return rules.Treated(run_id, rules.RunOutcome.SKIPPED, rules.reason_of(error), replay)
    return rules.Treated(run_id, rules.RunOutcome.FAILED, rules.reason_of(error))


def _skipped(run_id: Id, reason: str) -> rules.Treated:
    return rules.Treated(run_id, rules.RunOutcome.SKIPPED, reason)


async def _reached(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, run_ids: Sequence[Id]
) -> set[Id]:
    reach = selection.in_reach(actor, operation.action).with_only_columns(RUN.id)
    of_ids = RUN.id == sa.any_(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid)))
    return {row.id for row in await work.rows(reach.where(of_ids))}


_ACTIONS: Mapping[str, Treat] = {
    rules.OperationAction.CANCEL: _cancel,
    rules.OperationAction.RETRY: _retry,
    rules.OperationAction.RESUME: _resume,
    rules.OperationAction.UNDO: undo_runs,
    rules.OperationAction.REPLAY: selection.replay_events,
}
