"""Undoing runs: what their nodes wrote to records is reverted, in one transaction or step by step.

A step holds the row of its undo and moves it on, so that a repeated one finds it done. The undo is
a person's change with its own id in the history of records, which is how it is undone in turn.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import sqlalchemy as sa

from models.automation.automation_runs.history import with_called_runs, written_record_ids
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.rules import OPEN_RUN, RunRow
from models.automation.run_undos import queries, rules
from models.automation.run_undos.queries import run_undo
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.records import reverts
from models.data.records.rules.reverts import STAGES, Cause, Conflict, ConflictReason, Stage
from runtime.database import UnitOfWork

_undo = run_undo.c


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """A run with those it called, to be undone, or an earlier undo of it."""

    run: RunRow
    run_ids: Collection[Id]
    undoes_id: Id | None
    cause: Cause
    records: int
    """The number of records that were written."""

    @property
    def is_small(self) -> bool:
        """True when one transaction undoes it."""
        return self.records <= rules.AT_ONCE


async def plan_undo(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, undoes_id: Id | None = None
) -> UndoPlan:
    """The plan to undo a run, or an earlier undo of it; the run is held.

    Raises NotFoundError and NotUndoableRunError.
    """
    run = await load_run(work, actor, automation_id, run_id, lock=True)
    if run.status in OPEN_RUN:
        raise rules.NotUndoableRunError(rules.STILL_OPEN)
    called = await with_called_runs(work, actor.workspace_id, run.id, rules.MAX_CALLED)
    if len(called) > rules.MAX_CALLED:
        raise rules.NotUndoableRunError(rules.TOO_MANY)
    if any(one.status in OPEN_RUN for one in called):
        raise rules.NotUndoableRunError(rules.CALLED_OPEN)
    run_ids = {one.id for one in called}
    if undoes_id is None:
        cause = Cause(run_ids=run_ids)
    else:
        earlier = await queries.undo_row(work, actor, run.id, undoes_id)
        if earlier.completed_at is None:
            raise rules.NotUndoableRunError(rules.UNDO_RUNNING)
        cause = Cause(undo_ids={undoes_id})
    records = await reverts.number_of_written_records(work, actor.workspace_id, cause)
    return UndoPlan(run, run_ids, undoes_id, cause, records)


async def _undone(work: UnitOfWork, undo_ids: Collection[Id]) -> Mapping[Id, Id]:
    """The earlier undo by the one that undid it, for all undos of the runs that these are of."""
    if not undo_ids:
        return {}
    of_runs = sa.select(_undo.run_id).where(_undo.id.in_(sorted(undo_ids)))
    rows = await work.rows(
        sa.select(_undo.id, _undo.undoes_id).where(
            _undo.run_id.in_(of_runs), _undo.undoes_id.is_not(None)
        )
    )
    return {row.id: row.undoes_id for row in rows}


async def undo_at_once(
    work: UnitOfWork, actor: Actor, plan: UndoPlan, undo_id: Id
) -> queries.RunUndoDetail:
    """Carry out a small plan in this transaction."""
    row = await _insert(work, actor, plan, undo_id)
    record_ids = await _next(work, actor, plan.cause, None)
    for stage in STAGES:
        row = await _step(work, actor, plan, row, record_ids, stage)
    row = await _finish(work, row)
    return await queries.undo_detail(work, actor, row, plan.run_ids, trimmed=False)


class _NothingKeptError(Exception):
    """Ends the savepoint of a preview."""

    retryable = False


async def preview_undo(
    work: UnitOfWork, actor: Actor, plan: UndoPlan, undo_id: Id
) -> queries.RunUndoDetail:
    """The outcome of an undo, which is done in a savepoint and rolled back."""
    detail: queries.RunUndoDetail | None = None
    with suppress(_NothingKeptError):
        async with work.savepoint():
            detail = await undo_at_once(work, actor, plan, undo_id)
            raise _NothingKeptError
    assert detail is not None, "the undo was tried"
    update_with = {
        "id": None,
        "status": "preview",
        "completed_at": None,
        "trimmed": not plan.is_small,
    }
    return detail.model_copy(update=update_with)


async def begin_undo(
    work: UnitOfWork, actor: Actor, plan: UndoPlan, undo_id: Id, operation_id: Id
) -> rules.RunUndoRow:
    """The undo that an operation carries out step by step; the same one when it has begun."""
    statement = sa.select(run_undo).where(
        _undo.workspace_id == actor.workspace_id, _undo.id == undo_id
    )
    row = await work.first(statement, of=rules.RunUndoRow)
    return row or await _insert(work, actor, plan, undo_id, operation_id)


async def advance_undo(
    work: UnitOfWork, actor: Actor, plan: UndoPlan, row: rules.RunUndoRow
) -> rules.RunUndoRow:
    """The undo after its next step; it has ended when it is completed."""
    stage = Stage(row.stage)
    record_ids = await _next(work, actor, plan.cause, row.after_record_id)
    row = await _step(work, actor, plan, row, record_ids, stage, patient=True)
    if len(record_ids) == rules.AT_ONCE:
        return await _move(work, row.id, {"after_record_id": record_ids[-1]})
    following = STAGES.index(stage) + 1
    if following == len(STAGES):
        return await _finish(work, row)
    return await _move(work, row.id, {"stage": STAGES[following].value, "after_record_id": None})


async def get_undo(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, undo_id: Id
) -> queries.RunUndoDetail:
    """An undo of a run. Raises NotFoundError."""
    run = await load_run(work, actor, automation_id, run_id)
    row = await queries.undo_row(work, actor, run.id, undo_id)
    called = await with_called_runs(work, actor.workspace_id, run.id, rules.MAX_CALLED)
    return await queries.undo_detail(work, actor, row, {one.id for one in called}, trimmed=False)


async def _next(work: UnitOfWork, actor: Actor, cause: Cause, after: Id | None) -> Sequence[Id]:
    written = reverts.written_records(actor.workspace_id, cause)
    column = written.selected_columns.record_id
    if after is not None:
        written = written.where(column > after)
    return [row.record_id for row in await work.rows(written.order_by(column).limit(rules.AT_ONCE))]


async def _step(
    work: UnitOfWork,
    actor: Actor,
    plan: UndoPlan,
    row: rules.RunUndoRow,
    record_ids: Sequence[Id],
    stage: Stage,
    *,
    patient: bool = False,
) -> rules.RunUndoRow:
    """Undo one stage of some records, and note the conflicts."""
    reverting = reverts.Reverting(
        actor=_in_name_of(actor, plan, row.id),
        cause=plan.cause,
        find_undone=_undone,
        patient=patient,
    )
    conflicts = await reverting.revert(work, record_ids, stage)
    if not conflicts:
        return row
    kept = [*row.conflicts, *map(queries.stored_conflict, conflicts)][: rules.MAX_CONFLICTS]
    count = row.conflict_count + len(conflicts)
    return await _move(work, row.id, {"conflicts": kept, "conflict_count": count})


def _in_name_of(actor: Actor, plan: UndoPlan, undo_id: Id) -> Actor:
    """The person who undoes, whose changes follow from the run: chains of runs stay bounded."""
    chain = (*plan.run.chain, plan.run.id)
    principal = replace(actor.principal, undo_id=undo_id, run_chain=chain)
    return replace(actor, principal=principal)


async def _insert(
    work: UnitOfWork, actor: Actor, plan: UndoPlan, undo_id: Id, operation_id: Id | None = None
) -> rules.RunUndoRow:
    values: JsonObject = {
        "id": undo_id,
        "workspace_id": actor.workspace_id,
        "run_id": plan.run.id,
        "undoes_id": plan.undoes_id,
        "operation_id": operation_id,
        "actor_user_id": actor.user_id,
        "stage": STAGES[0].value,
        "runs": len(plan.run_ids),
        "records": plan.records,
        "reverted": 0,
        "created_at": work.now,
    }
    conflicts = await _missing(work, actor, plan) if plan.cause.run_ids else []
    values["conflicts"] = [queries.stored_conflict(conflict) for conflict in conflicts]
    values["conflict_count"] = len(conflicts)
    return await work.one(
        sa.insert(run_undo).values(**values).returning(run_undo), "undo", of=rules.RunUndoRow
    )


async def _missing(work: UnitOfWork, actor: Actor, plan: UndoPlan) -> list[reverts.RecordConflict]:
    """Conflicts for the records that nodes wrote and that have no history any more."""
    run_ids = sorted(plan.run_ids)[: rules.MAX_SEARCHED]
    record_ids = await written_record_ids(work, run_ids)
    return [
        reverts.RecordConflict(record_id, None, None, Conflict(ConflictReason.DELETED))
        for record_id in await reverts.missing_records(work, actor.workspace_id, record_ids)
    ]


async def _finish(work: UnitOfWork, row: rules.RunUndoRow) -> rules.RunUndoRow:
    reverted = await reverts.number_of_undone_records(work, row.workspace_id, row.id)
    return await _move(work, row.id, {"completed_at": work.now, "reverted": reverted})


async def _move(work: UnitOfWork, undo_id: Id, values: JsonObject) -> rules.RunUndoRow:
    statement = (
        sa.update(run_undo)
        .where(_undo.id == undo_id, _undo.completed_at.is_(None))
        .values(values)
        .returning(run_undo)
    )
    return await work.one(statement, "undo", of=rules.RunUndoRow)


async def stop_undos(work: UnitOfWork, operation_id: Id) -> None:
    """End the undo that an operation has begun and does not end; another one may follow."""
    open_undos = sa.select(run_undo).where(
        _undo.operation_id == operation_id, _undo.completed_at.is_(None)
    )
    for row in await work.rows(open_undos, of=rules.RunUndoRow):
        await _finish(work, await _move(work, row.id, {"stage": rules.STOPPED}))
