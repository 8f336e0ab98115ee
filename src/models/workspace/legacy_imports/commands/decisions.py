"""Decisions of administrators about a run, under the lock of its row (decisions C14, D5).

The row is the decision; the execution is told of it afterwards.
"""

from collections.abc import Sequence

from sqlalchemy import update

from models.core.access.rules import Principal
from models.core.base import Id
from models.people.workspaces.queries import is_open_workspace
from models.workspace.legacy_imports.commands import executions
from models.workspace.legacy_imports.commands.moves import chosen_of, move, require
from models.workspace.legacy_imports.notices import notify_maker
from models.workspace.legacy_imports.queries import (
    entries_of,
    find_entry,
    find_run,
    get_run,
)
from models.workspace.legacy_imports.rules import (
    AT_ONCE_CANCELLED,
    RUN_LIFECYCLE,
    TAKEN_BACK,
    ImportStage,
    LegacyImportStatus,
    Mode,
)
from models.workspace.legacy_imports.shapes import (
    ApproveLegacyImport,
    CancelLegacyImport,
    LegacyImport,
    UpdateImportWorkspace,
)
from models.workspace.legacy_imports.tables import (
    LegacyImportRun,
    LegacyImportWorkspace,
    legacy_import_workspace,
)
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError

_entry = legacy_import_workspace.c


async def approve(
    work: UnitOfWork, principal: Principal, run_id: Id, body: ApproveLegacyImport
) -> LegacyImport:
    """Let a reviewed run be started. Raises ConflictError, and NotFoundError for an entry."""
    run = await find_run(work, run_id, lock=True)
    require(run, {LegacyImportStatus.AWAITING_REVIEW}, "approved")
    entries = await entries_of(work, run_id)
    if body.selected_workspace_ids is not None:
        selection = chosen_of(entries, body.selected_workspace_ids)
        await work.execute(
            update(legacy_import_workspace)
            .where(_entry.run_id == run_id)
            .values(selected=_entry.id.in_([entry.id for entry in selection]), updated_at=work.now)
        )
    else:
        selection = [entry for entry in entries if entry.selected]
    _check_selection(selection)
    await move(
        work,
        run,
        LegacyImportStatus.APPROVED,
        approved_at=work.now,
        approved_by_user_id=principal.user_id,
        approval_note=body.note,
    )
    await executions.signal_execution(work, run, "approve")
    return await get_run(work, run_id)


def _check_selection(selection: Sequence[LegacyImportWorkspace]) -> None:
    """Raises ConflictError for workspaces that cannot be imported as they are."""
    if not selection:
        raise ConflictError("No workspace of the legacy import run is selected.")
    for entry in selection:
        if entry.stage == ImportStage.BLOCKED:
            reason = entry.errors[0] if entry.errors else "see its errors"
            raise ConflictError(f"The workspace {entry.source_name} is blocked: {reason}")
        if entry.stage != ImportStage.READY:
            raise ConflictError(
                f"The workspace {entry.source_name} has not been checked yet; repeat the dry run."
            )


async def start(work: UnitOfWork, run_id: Id) -> LegacyImport:
    """Begin to import what is selected of an approved run. Raises ConflictError."""
    run = await find_run(work, run_id, lock=True)
    require(run, {LegacyImportStatus.APPROVED}, "started")
    await move(work, run, LegacyImportStatus.IMPORTING, mode=Mode.APPLY.value, started_at=work.now)
    of_run = update(legacy_import_workspace).where(_entry.run_id == run_id)
    await work.execute(
        of_run.where(_entry.selected).values(
            stage=ImportStage.QUEUED.value, attempt=1, counts={}, progress={}, updated_at=work.now
        )
    )
    await work.execute(
        of_run.where(~_entry.selected).values(stage=ImportStage.SKIPPED.value, updated_at=work.now)
    )
    await executions.signal_execution(work, run, "start")
    return await get_run(work, run_id)


async def repeat_dry_run(work: UnitOfWork, run_id: Id) -> LegacyImport:
    """Check the selected workspaces of a run that awaits review again. Raises ConflictError."""
    run = await find_run(work, run_id, lock=True)
    require(run, {LegacyImportStatus.AWAITING_REVIEW}, "checked again")
    await _check_again(work, run, "dry_run")
    return await get_run(work, run_id)


async def _check_again(
    work: UnitOfWork, run: LegacyImportRun, decision: str, entry_id: Id | None = None
) -> None:
    """Check the selected workspaces of a run again, or one of them."""
    stale = update(legacy_import_workspace).where(_entry.run_id == run.id, _entry.selected)
    if entry_id is not None:
        stale = stale.where(_entry.id == entry_id)
    await work.execute(
        stale.values(stage=ImportStage.QUEUED.value, progress={}, updated_at=work.now)
    )
    await move(work, run, LegacyImportStatus.DRY_RUNNING)
    await executions.signal_execution(work, run, decision)


async def update_workspace(
    work: UnitOfWork, run_id: Id, entry_id: Id, body: UpdateImportWorkspace
) -> LegacyImport:
    """Select a workspace, or choose where it goes; what was not checked so is checked.

    Raises ConflictError, and NotFoundError for an unknown entry or target.
    """
    run = await find_run(work, run_id, lock=True)
    entry = await find_entry(work, run_id, entry_id)
    given = body.model_dump(include=body.model_fields_set)
    target = given.get("target_workspace_id", entry.target_workspace_id)
    if body.target_workspace_id and not await is_open_workspace(work, body.target_workspace_id):
        raise NotFoundError("workspace")
    require(run, {LegacyImportStatus.AWAITING_REVIEW}, "changed")
    selected = entry.selected if given.get("selected") is None else given["selected"]
    remapped = target != entry.target_workspace_id
    if target is not None and any(
        one.target_workspace_id == target and one.id != entry_id
        for one in await entries_of(work, run_id)
    ):
        raise ConflictError("Another workspace of the legacy import run goes there already.")
    await work.execute(
        update(legacy_import_workspace)
        .where(_entry.id == entry_id)
        .values(
            selected=selected,
            target_workspace_id=target,
            creates=target is None,
            updated_at=work.now,
        )
    )
    if selected and (remapped or entry.stage == ImportStage.QUEUED):
        await _check_again(work, run, "reselect", entry_id)
    elif remapped:
        await work.execute(
            update(legacy_import_workspace)
            .where(_entry.id == entry_id)
            .values(stage=ImportStage.QUEUED.value, progress={})
        )
    return await get_run(work, run_id)


async def cancel(
    work: UnitOfWork, principal: Principal, run_id: Id, body: CancelLegacyImport
) -> LegacyImport:
    """Cancel a run; what it has not finished is taken back. A finished one stays as it is.

    Raises ConflictError while the run is cancelled or rolled back already.
    """
    run = await find_run(work, run_id, lock=True)
    if run.status in RUN_LIFECYCLE.at_rest:
        return await get_run(work, run_id)
    require(run, AT_ONCE_CANCELLED | TAKEN_BACK, "cancelled")
    who = {"canceled_by_user_id": principal.user_id, "cancellation_reason": body.reason}
    if run.status in TAKEN_BACK:
        await move(work, run, LegacyImportStatus.CANCELLING, **who)
        await executions.signal_execution(work, run, "cancel")
        return await get_run(work, run_id)
    await move(work, run, LegacyImportStatus.CANCELLED, completed_at=work.now, **who)
    await work.execute(
        update(legacy_import_workspace)
        .where(_entry.run_id == run_id)
        .values(stage=ImportStage.CANCELLED.value, updated_at=work.now)
    )
    await executions.cancel_execution(work, run)
    if run.created_by_user_id != principal.user_id:
        await notify_maker(work, run, LegacyImportStatus.CANCELLED, body.reason or "")
    return await get_run(work, run_id)
