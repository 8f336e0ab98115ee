"""Writes by the execution of a run about itself: where it goes next, and how it ends."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update

from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.workspace.legacy_imports.commands.executions import cancel_execution
from models.workspace.legacy_imports.commands.releases import release
from models.workspace.legacy_imports.lifecycle import LEGACY_IMPORTS
from models.workspace.legacy_imports.notices import notify_maker, notify_owners
from models.workspace.legacy_imports.queries import decisive, entries_of
from models.workspace.legacy_imports.rules import (
    AT_ONCE_CANCELLED,
    END_WITH_DATA,
    RUN_LIFECYCLE,
    ImportStage,
    LegacyImportStatus,
    RollbackState,
    Step,
    StepKind,
    next_step,
)
from models.workspace.legacy_imports.tables import (
    LegacyImportRun,
    LegacyImportWorkspace,
    legacy_import_run,
    legacy_import_workspace,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

_entry = legacy_import_workspace.c


async def advance(work: UnitOfWork, run_id: Id, execution: str, keys: KeyRing) -> Step | None:
    """Bring a run as far as its rows say; what its execution is to do there.

    None for an execution that is no longer that of the run.
    """
    run = await _locked(work, run_id)
    if run is None or run.execution != execution:
        return None
    entries = await entries_of(work, run_id)
    status = LegacyImportStatus(run.status)
    while (step := next_step(status, decisive(entries))).kind == StepKind.MOVE:
        await _enter(work, run, step.status, entries, keys)
        status = step.status
        entries = await entries_of(work, run_id)
    return step


async def _enter(
    work: UnitOfWork,
    run: LegacyImportRun,
    status: LegacyImportStatus,
    entries: Sequence[LegacyImportWorkspace],
    keys: KeyRing,
) -> None:
    """Move a run along the table, with what belongs to the move."""
    values: dict[str, Any] = {"updated_at": work.now}
    if status in RUN_LIFECYCLE.at_rest and run.status != LegacyImportStatus.ROLLING_BACK:
        values["completed_at"] = work.now
    if status in END_WITH_DATA:
        done = [one for one in entries if one.stage == ImportStage.DONE]
        await release(work, run, done, keys)
        await notify_owners(work, run, status, done)
    moved = await lifecycle.move(work, LEGACY_IMPORTS, run.id, status, **values)
    assert moved, f"no move leads from {run.status} to {status}"
    await notify_maker(work, run, status)
    if status == LegacyImportStatus.CANCELLED:
        await cancel_execution(work, run)


async def fail_run(work: UnitOfWork, run_id: Id, errors: Sequence[str]) -> None:
    """End an open run that cannot be imported, with the reasons."""
    run = await _locked(work, run_id)
    if run is not None and run.status in RUN_LIFECYCLE.open:
        await _close(work, run, LegacyImportStatus.FAILED, errors)


async def abandon(work: UnitOfWork, run_id: Id, reason: str, *, cancelled: bool) -> bool:
    """Close a run whose execution is lost, with the reason; False when it was closed before."""
    run = await _locked(work, run_id)
    if run is None or run.status not in RUN_LIFECYCLE.open:
        return False
    end = LegacyImportStatus.FAILED
    if cancelled and run.status in AT_ONCE_CANCELLED:
        end = LegacyImportStatus.CANCELLED
    if run.status == LegacyImportStatus.ROLLING_BACK:
        end = LegacyImportStatus.ROLLBACK_FAILED
        await work.execute(
            update(legacy_import_workspace)
            .where(
                _entry.run_id == run_id,
                _entry.rollback_state.in_([RollbackState.REQUESTED, RollbackState.RUNNING]),
            )
            .values(rollback_state=RollbackState.FAILED.value, last_error=reason)
        )
    return await _close(work, run, end, [*run.errors, reason])


async def _close(
    work: UnitOfWork, run: LegacyImportRun, end: LegacyImportStatus, errors: Sequence[str]
) -> bool:
    """End a locked run out of its turn; False where no move leads there."""
    has_moved = await lifecycle.move(
        work,
        LEGACY_IMPORTS,
        run.id,
        end,
        errors=list(errors),
        completed_at=run.completed_at or work.now,
        updated_at=work.now,
    )
    if has_moved:
        await notify_maker(work, run, end, errors[-1])
    return has_moved


async def _locked(work: UnitOfWork, run_id: Id) -> LegacyImportRun | None:
    statement = select(legacy_import_run).where(legacy_import_run.c.id == run_id)
    return await work.first(statement.with_for_update(), of=LegacyImportRun)
