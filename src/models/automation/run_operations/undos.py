"""Undoing the runs of an operation one after the other, large ones in several transactions."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ARRAY, Uuid, any_, literal

from models.automation.automation_runs.queries import RUN
from models.automation.run_operations.rules import (
    UNKNOWN,
    OperationAction,
    OperationRow,
    RunOutcome,
    Treated,
    reason_of,
)
from models.automation.run_operations.selection import in_reach
from models.automation.run_undos.commands import UndoPlan, advance_undo, begin_undo, plan_undo
from models.automation.run_undos.rules import AT_ONCE, NotUndoableRunError, RunUndoRow
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError, UnavailableError

NOTHING = "The run wrote no records, or they were reverted before."
CONFLICTS = "{reverted} records reverted, {conflicts} conflicts."


def undo_id_of(operation_id: Id, run_id: Id) -> Id:
    """The id of the undo that an operation makes of a run."""
    return derived_id(operation_id, run_id)


async def undo_runs(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> Sequence[Treated]:
    """Undo the first of these runs, as far as the records of one transaction carry.

    A run with more records is begun and not among the outcomes: the next transaction continues it.
    """
    automations = await _automations(work, actor, operation, run_ids)
    treated: list[Treated] = []
    records = 0
    for run_id in run_ids:
        if run_id not in automations:
            treated.append(Treated(run_id, RunOutcome.SKIPPED, UNKNOWN))
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
            treated.append(Treated(run_id, RunOutcome.SKIPPED, reason_of(error)))
            continue
        except PlatformError as error:
            treated.append(Treated(run_id, RunOutcome.FAILED, reason_of(error)))
            continue
        if row.completed_at is None:
            break
        records += plan.records
        treated.append(_outcome(run_id, row))
    return treated


async def _automations(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> Mapping[Id, Id]:
    """The automations of the runs in reach, by run."""
    runs = in_reach(actor, operation.action).with_only_columns(RUN.id, RUN.automation_id)
    these = RUN.id == any_(literal(list(run_ids), ARRAY(Uuid)))
    return {row.id: row.automation_id for row in await work.rows(runs.where(these))}


async def _plan(
    work: UnitOfWork, actor: Actor, operation: OperationRow, automation_id: Id, run_id: Id
) -> UndoPlan:
    undoes: str | None = operation.parameters.get("undoId")
    undoes_id = None if undoes is None else Id(undoes)
    if operation.undoes_id is not None and operation.action == OperationAction.UNDO:
        undoes_id = undo_id_of(operation.undoes_id, run_id)
    return await plan_undo(work, actor, automation_id, run_id, undoes_id)


async def _advanced(
    work: UnitOfWork, actor: Actor, operation: OperationRow, plan: UndoPlan
) -> RunUndoRow:
    """The undo after the next step; a small one after all of them."""
    undo_id = undo_id_of(operation.id, plan.run.id)
    row = await begin_undo(work, actor, plan, undo_id, operation.id)
    while row.completed_at is None:
        row = await advance_undo(work, actor, plan, row)
        if not plan.is_small:
            break
    return row


def _outcome(run_id: Id, row: RunUndoRow) -> Treated:
    if not row.reverted and not row.conflict_count:
        return Treated(run_id, RunOutcome.SKIPPED, NOTHING)
    reason = None
    if row.conflict_count:
        reason = CONFLICTS.format(reverted=row.reverted, conflicts=row.conflict_count)
    outcome = RunOutcome.SUCCEEDED if row.reverted else RunOutcome.SKIPPED
    return Treated(run_id, outcome, reason)
