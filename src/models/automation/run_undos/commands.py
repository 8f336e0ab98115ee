"""Undoing runs: what their nodes wrote to records goes back, in one transaction or step by step.

A step holds the row of its undo and moves it on, so that a repeated one finds it done. The undo is
a person's change with its own id in the history of records, which is how it is undone in turn.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlalchemy import func, insert, select, update

from models.automation.automation_runs.history import with_called_runs
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.rules import OPEN_RUN, RunRow
from models.automation.run_undos.queries import (
    RunUndoDetail,
    stored_conflict,
    undo_detail,
    undo_row,
)
from models.automation.run_undos.rules import (
    AT_ONCE,
    CALLED_OPEN,
    MAX_CALLED,
    MAX_CONFLICTS,
    STILL_OPEN,
    TOO_MANY,
    UNDO_RUNNING,
    NotUndoableRunError,
    RunUndoRow,
)
from models.automation.run_undos.tables import run_undo
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.records.queries import number_of_undone_records
from models.data.records.reverts import Reverting, written_records
from models.data.records.rules.reverts import STAGES, Cause, Stage
from runtime.database import UnitOfWork

_undo = run_undo.c


@dataclass(frozen=True, slots=True)
class Story:
    """What is undone: a run with those it called, or an earlier undo of it."""

    run: RunRow
    run_ids: Collection[Id]
    undoes_id: Id | None
    cause: Cause
    records: int
    """The number of records that were written."""

    @property
    def is_small(self) -> bool:
        """True when one transaction undoes it."""
        return self.records <= AT_ONCE


async def story_of(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, undoes_id: Id | None = None
) -> Story:
    """What the undo of a run, or of an earlier undo of it, would be about; the run is held.

    Raises NotFoundError and NotUndoableRunError.
    """
    run = await load_run(work, actor, automation_id, run_id, lock=True)
    if run.status in OPEN_RUN:
        raise NotUndoableRunError(STILL_OPEN)
    called = await with_called_runs(work, actor.workspace_id, run.id, MAX_CALLED)
    if len(called) > MAX_CALLED:
        raise NotUndoableRunError(TOO_MANY)
    if any(one.status in OPEN_RUN for one in called):
        raise NotUndoableRunError(CALLED_OPEN)
    run_ids = {one.id for one in called}
    related = await _related(work, actor, {*run_ids, *run.chain})
    if undoes_id is None:
        cause = Cause(run_ids=run_ids, related=related)
    else:
        earlier = await undo_row(work, actor, run.id, undoes_id)
        if earlier.completed_at is None:
            raise NotUndoableRunError(UNDO_RUNNING)
        cause = Cause(undo_ids={undoes_id}, related=related - {undoes_id})
    written = written_records(actor.workspace_id, cause).subquery()
    records: int = await work.scalar(select(func.count()).select_from(written))
    return Story(run, run_ids, undoes_id, cause, records)


async def _related(work: UnitOfWork, actor: Actor, run_ids: Collection[Id]) -> set[Id]:
    """The undoes of these runs, and of those undoes."""
    rows = await work.rows(
        select(_undo.id).where(
            _undo.workspace_id == actor.workspace_id, _undo.run_id.in_(sorted(run_ids))
        )
    )
    return {row.id for row in rows}


async def undo_at_once(work: UnitOfWork, actor: Actor, story: Story, undo_id: Id) -> RunUndoDetail:
    """Undo a small story in this transaction."""
    row = await _insert(work, actor, story, undo_id)
    record_ids = await _next(work, actor, story.cause, None)
    for stage in STAGES:
        row = await _step(work, actor, story, row, record_ids, stage)
    row = await _finish(work, row)
    return await undo_detail(work, actor, row, story.run_ids, trimmed=False)


class _NothingKeptError(Exception):
    """Ends the savepoint of a preview."""

    retryable = False


async def preview_undo(work: UnitOfWork, actor: Actor, story: Story, undo_id: Id) -> RunUndoDetail:
    """What the undo would do: it is done, told, and taken back."""
    detail: RunUndoDetail | None = None
    with suppress(_NothingKeptError):
        async with work.savepoint():
            detail = await undo_at_once(work, actor, story, undo_id)
            raise _NothingKeptError
    assert detail is not None, "the undo was tried"
    update_with = {
        "id": None,
        "status": "preview",
        "completed_at": None,
        "trimmed": not story.is_small,
    }
    return detail.model_copy(update=update_with)


async def begin_undo(
    work: UnitOfWork, actor: Actor, story: Story, undo_id: Id, operation_id: Id
) -> RunUndoRow:
    """The undo that an operation carries out step by step; the same one when it has begun."""
    statement = select(run_undo).where(
        _undo.workspace_id == actor.workspace_id, _undo.id == undo_id
    )
    row = await work.first(statement, of=RunUndoRow)
    return row or await _insert(work, actor, story, undo_id, operation_id)


async def advance_undo(work: UnitOfWork, actor: Actor, story: Story, row: RunUndoRow) -> RunUndoRow:
    """The undo after its next step; it has ended when it is completed."""
    stage = Stage(row.stage)
    record_ids = await _next(work, actor, story.cause, row.after_record_id)
    row = await _step(work, actor, story, row, record_ids, stage, patient=True)
    if len(record_ids) == AT_ONCE:
        return await _move(work, row.id, {"after_record_id": record_ids[-1]})
    following = STAGES.index(stage) + 1
    if following == len(STAGES):
        return await _finish(work, row)
    return await _move(work, row.id, {"stage": STAGES[following].value, "after_record_id": None})


async def get_undo(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, undo_id: Id
) -> RunUndoDetail:
    """An undo of a run. Raises NotFoundError."""
    run = await load_run(work, actor, automation_id, run_id)
    row = await undo_row(work, actor, run.id, undo_id)
    called = await with_called_runs(work, actor.workspace_id, run.id, MAX_CALLED)
    return await undo_detail(work, actor, row, {one.id for one in called}, trimmed=False)


async def _next(work: UnitOfWork, actor: Actor, cause: Cause, after: Id | None) -> Sequence[Id]:
    written = written_records(actor.workspace_id, cause)
    column = written.selected_columns.record_id
    if after is not None:
        written = written.where(column > after)
    return [row.record_id for row in await work.rows(written.order_by(column).limit(AT_ONCE))]


async def _step(
    work: UnitOfWork,
    actor: Actor,
    story: Story,
    row: RunUndoRow,
    record_ids: Sequence[Id],
    stage: Stage,
    *,
    patient: bool = False,
) -> RunUndoRow:
    """Undo one stage of some records, and note what does not go back."""
    reverting = Reverting(
        actor=_in_name_of(actor, story, row.id),
        cause=story.cause._replace(related={*story.cause.related, row.id}),
        patient=patient,
    )
    conflicts = await reverting.revert(work, record_ids, stage)
    if not conflicts:
        return row
    kept = [*row.conflicts, *map(stored_conflict, conflicts)][:MAX_CONFLICTS]
    count = row.conflict_count + len(conflicts)
    return await _move(work, row.id, {"conflicts": kept, "conflict_count": count})


def _in_name_of(actor: Actor, story: Story, undo_id: Id) -> Actor:
    """The person who undoes, whose changes follow from the run: chains of runs stay bounded."""
    chain = (*story.run.chain, story.run.id)
    principal = replace(actor.principal, undo_id=undo_id, run_chain=chain)
    return replace(actor, principal=principal)


async def _insert(
    work: UnitOfWork, actor: Actor, story: Story, undo_id: Id, operation_id: Id | None = None
) -> RunUndoRow:
    values: JsonObject = {
        "id": undo_id,
        "workspace_id": actor.workspace_id,
        "run_id": story.run.id,
        "undoes_id": story.undoes_id,
        "operation_id": operation_id,
        "actor_user_id": actor.user_id,
        "stage": STAGES[0].value,
        "runs": len(story.run_ids),
        "records": story.records,
        "reverted": 0,
        "conflict_count": 0,
        "conflicts": [],
        "created_at": work.now,
    }
    return await work.one(
        insert(run_undo).values(**values).returning(run_undo), "undo", of=RunUndoRow
    )


async def _finish(work: UnitOfWork, row: RunUndoRow) -> RunUndoRow:
    reverted = await number_of_undone_records(work, row.workspace_id, row.id)
    return await _move(work, row.id, {"completed_at": work.now, "reverted": reverted})


async def _move(work: UnitOfWork, undo_id: Id, values: JsonObject) -> RunUndoRow:
    statement = (
        update(run_undo)
        .where(_undo.id == undo_id, _undo.completed_at.is_(None))
        .values(values)
        .returning(run_undo)
    )
    return await work.one(statement, "undo", of=RunUndoRow)
