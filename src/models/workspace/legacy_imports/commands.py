"""Decisions of administrators about a run, under the lock of its row, from creation to rollback.

The row holds the decision; the execution gets a signal afterwards (ADR 0043).
"""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from models.content.files.rules import Content
from models.core.access.rules import Principal
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.people.workspaces import is_open_workspace
from models.workspace.legacy_imports import executions, queries, rules
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.temporal.workflow_kinds import WorkflowKind


class WrongStatusError(ConflictError):
    """A move that the transition table does not have; the message names the present status."""

    def __init__(self, status: str, wanted: str) -> None:
        shown = rules.LegacyImportStatus(status).value
        super().__init__(f"The legacy import run is {shown}, so it cannot be {wanted}.")


OBJECTS = "legacy-imports"
"""The prefix of the keys of bundles that were sent with the request."""


async def create_run(
    work: UnitOfWork, principal: Principal, run_id: Id, body: queries.CreateLegacyImport
) -> queries.LegacyImport:
    """Accept a bundle that is in the object store. Raises ValidationError for `mode` apply."""
    if body.mode == rules.Mode.APPLY:
        raise ValidationError.at("mode", "A run begins as a dry run. Approve and start it.")
    return await _accept(
        work, principal, run_id, body.bundle_object_key, body.bundle_checksum, uploaded=False
    )


async def create_uploaded_run(
    work: UnitOfWork, principal: Principal, run_id: Id, upload: Content
) -> queries.LegacyImport:
    """Accept a bundle that was sent with the request. Raises ValidationError for an empty one."""
    if not upload.byte_size:
        raise ValidationError.at("", "The body is empty. Send a bundle, or reference one in JSON.")
    checksum = upload.sha256.hex()
    return await _accept(work, principal, run_id, upload.object_key, checksum, uploaded=True)


async def _accept(
    work: UnitOfWork, principal: Principal, run_id: Id, key: str, checksum: str, *, uploaded: bool
) -> queries.LegacyImport:
    row = {
        "id": run_id,
        "bundle_object_key": key,
        "bundle_checksum": checksum,
        "uploaded": uploaded,
        "mode": rules.Mode.DRY_RUN.value,
        "created_by_user_id": principal.user_id,
        "updated_at": work.now,
    }
    if await lifecycle.accept(work, queries.LEGACY_IMPORTS, row):
        own = queries.legacy_import_run.c.created_by_user_id == principal.user_id
        await lifecycle.require_place_of(
            work, principal.user_id, queries.LEGACY_IMPORTS, WorkflowKind.LEGACY_IMPORT, own
        )
        await executions.start_execution(work, run_id)
    return await queries.get_run(work, run_id)


_entry = queries.legacy_import_workspace.c


async def approve(
    work: UnitOfWork, principal: Principal, run_id: Id, body: queries.ApproveLegacyImport
) -> queries.LegacyImport:
    """Let a reviewed run be started. Raises ConflictError, and NotFoundError for an entry."""
    run = await queries.find_run(work, run_id, lock=True)
    require_status(run, {rules.LegacyImportStatus.AWAITING_REVIEW}, "approved")
    entries = await queries.entries_of(work, run_id)
    if body.selected_workspace_ids is not None:
        selection = chosen_entries(entries, body.selected_workspace_ids)
        await work.execute(
            sa.update(queries.legacy_import_workspace)
            .where(_entry.run_id == run_id)
            .values(selected=_entry.id.in_([entry.id for entry in selection]), updated_at=work.now)
        )
    else:
        selection = [entry for entry in entries if entry.selected]
    _check_selection(selection)
    await move_run(
        work,
        run,
        rules.LegacyImportStatus.APPROVED,
        approved_at=work.now,
        approved_by_user_id=principal.user_id,
        approval_note=body.note,
    )
    await executions.signal_execution(work, run, "approve")
    return await queries.get_run(work, run_id)


def _check_selection(selection: Sequence[queries.LegacyImportWorkspace]) -> None:
    """Raises ConflictError for workspaces that cannot be imported as they are."""
    if not selection:
        raise ConflictError("No workspace is selected.")
    for entry in selection:
        if entry.stage == rules.ImportStage.BLOCKED:
            reason = entry.errors[0] if entry.errors else "see its errors"
            raise ConflictError(f"The workspace {entry.source_name} is blocked: {reason}")
        if entry.stage != rules.ImportStage.READY:
            raise ConflictError(
                f"The workspace {entry.source_name} is not validated yet. Repeat the dry run."
            )


async def start(work: UnitOfWork, run_id: Id) -> queries.LegacyImport:
    """Begin to import what is selected of an approved run. Raises ConflictError."""
    run = await queries.find_run(work, run_id, lock=True)
    require_status(run, {rules.LegacyImportStatus.APPROVED}, "started")
    await move_run(
        work,
        run,
        rules.LegacyImportStatus.IMPORTING,
        mode=rules.Mode.APPLY.value,
        started_at=work.now,
    )
    of_run = sa.update(queries.legacy_import_workspace).where(_entry.run_id == run_id)
    await work.execute(
        of_run.where(_entry.selected).values(
            stage=rules.ImportStage.QUEUED.value,
            attempt=1,
            counts={},
            progress={},
            updated_at=work.now,
        )
    )
    await work.execute(
        of_run.where(~_entry.selected).values(
            stage=rules.ImportStage.SKIPPED.value, updated_at=work.now
        )
    )
    await executions.signal_execution(work, run, "start")
    return await queries.get_run(work, run_id)


async def repeat_dry_run(work: UnitOfWork, run_id: Id) -> queries.LegacyImport:
    """Check the selected workspaces of a run that awaits review again. Raises ConflictError."""
    run = await queries.find_run(work, run_id, lock=True)
    require_status(run, {rules.LegacyImportStatus.AWAITING_REVIEW}, "checked again")
    await _check_again(work, run, "dry_run")
    return await queries.get_run(work, run_id)


async def _check_again(
    work: UnitOfWork, run: queries.LegacyImportRun, decision: str, entry_id: Id | None = None
) -> None:
    """Check the selected workspaces of a run again, or one of them."""
    stale = sa.update(queries.legacy_import_workspace).where(
        _entry.run_id == run.id, _entry.selected
    )
    if entry_id is not None:
        stale = stale.where(_entry.id == entry_id)
    await work.execute(
        stale.values(stage=rules.ImportStage.QUEUED.value, progress={}, updated_at=work.now)
    )
    await move_run(work, run, rules.LegacyImportStatus.DRY_RUNNING)
    await executions.signal_execution(work, run, decision)


async def update_workspace(
    work: UnitOfWork, run_id: Id, entry_id: Id, body: queries.UpdateImportWorkspace
) -> queries.LegacyImport:
    """Select a workspace, or choose where it goes; what was not checked so is checked.

    Raises ConflictError, and NotFoundError for an unknown entry or target.
    """
    run = await queries.find_run(work, run_id, lock=True)
    entry = await queries.find_entry(work, run_id, entry_id)
    given = body.model_dump(include=body.model_fields_set)
    target = given.get("target_workspace_id", entry.target_workspace_id)
    if body.target_workspace_id and not await is_open_workspace(work, body.target_workspace_id):
        raise NotFoundError("workspace")
    require_status(run, {rules.LegacyImportStatus.AWAITING_REVIEW}, "changed")
    selected = entry.selected if given.get("selected") is None else given["selected"]
    remapped = target != entry.target_workspace_id
    if target is not None and any(
        one.target_workspace_id == target and one.id != entry_id
        for one in await queries.entries_of(work, run_id)
    ):
        raise ConflictError("Another workspace of the run already has this target.")
    await work.execute(
        sa.update(queries.legacy_import_workspace)
        .where(_entry.id == entry_id)
        .values(
            selected=selected,
            target_workspace_id=target,
            creates=target is None,
            updated_at=work.now,
        )
    )
    if selected and (remapped or entry.stage == rules.ImportStage.QUEUED):
        await _check_again(work, run, "reselect", entry_id)
    elif remapped:
        await work.execute(
            sa.update(queries.legacy_import_workspace)
            .where(_entry.id == entry_id)
            .values(stage=rules.ImportStage.QUEUED.value, progress={})
        )
    return await queries.get_run(work, run_id)


async def cancel(
    work: UnitOfWork, principal: Principal, run_id: Id, body: queries.CancelLegacyImport
) -> queries.LegacyImport:
    """Cancel a run; unfinished workspaces are rolled back. Finished ones stay as they are.

    Raises ConflictError while the run is cancelled or rolled back already.
    """
    run = await queries.find_run(work, run_id, lock=True)
    if run.status in rules.RUN_LIFECYCLE.at_rest:
        return await queries.get_run(work, run_id)
    require_status(run, rules.AT_ONCE_CANCELLED | rules.TAKEN_BACK, "cancelled")
    who = {"canceled_by_user_id": principal.user_id, "cancellation_reason": body.reason}
    if run.status in rules.TAKEN_BACK:
        await move_run(work, run, rules.LegacyImportStatus.CANCELLING, **who)
        await executions.signal_execution(work, run, "cancel")
        return await queries.get_run(work, run_id)
    await move_run(work, run, rules.LegacyImportStatus.CANCELLED, completed_at=work.now, **who)
    await work.execute(
        sa.update(queries.legacy_import_workspace)
        .where(_entry.run_id == run_id)
        .values(stage=rules.ImportStage.CANCELLED.value, updated_at=work.now)
    )
    await executions.cancel_execution(work, run)
    if run.created_by_user_id != principal.user_id:
        await executions.notify_maker(
            work, run, rules.LegacyImportStatus.CANCELLED, body.reason or ""
        )
    return await queries.get_run(work, run_id)


async def retry_workspace(work: UnitOfWork, run_id: Id, entry_id: Id) -> queries.LegacyImport:
    """Continue with a workspace whose import failed, from its last chunk. Raises ConflictError."""
    run = await queries.find_run(work, run_id, lock=True)
    entry = await queries.find_entry(work, run_id, entry_id)
    require_status(run, rules.RETRIED_IN, "retried")
    if entry.stage != rules.ImportStage.FAILED or entry.rollback_state != rules.RollbackState.NONE:
        raise ConflictError(
            f"The workspace {entry.source_name} is {entry.stage}. Only failed ones can be retried."
        )
    if entry.attempt >= rules.MAX_ATTEMPTS:
        raise ConflictError(
            f"The workspace {entry.source_name} has failed {entry.attempt} times."
            " Roll it back instead."
        )
    await work.execute(
        sa.update(queries.legacy_import_workspace)
        .where(_entry.id == entry_id)
        .values(
            stage=entry.progress.get("stage", rules.ImportStage.CREATING.value),
            attempt=entry.attempt + 1,
            updated_at=work.now,
        )
    )
    if run.status == rules.LegacyImportStatus.IMPORTING:
        await executions.signal_execution(work, run, "retry_workspace")
    elif run.status == rules.LegacyImportStatus.VERIFYING:
        await move_run(work, run, rules.LegacyImportStatus.IMPORTING)
        await executions.signal_execution(work, run, "retry_workspace")
    else:
        await _go_on(work, run, rules.LegacyImportStatus.IMPORTING, "retry")
    return await queries.get_run(work, run_id)


async def release_finished(work: UnitOfWork, run_id: Id, keys: KeyRing) -> queries.LegacyImport:
    """Show the workspaces that were verified before a run was cancelled.

    Raises ConflictError where there is none, or when the retention may have removed parts of it.
    """
    run = await queries.find_run(work, run_id, lock=True)
    require_status(run, rules.RELEASED_IN, "released")
    finished = [one for one in await queries.entries_of(work, run_id) if queries.is_finished(one)]
    if not finished:
        raise ConflictError(
            f"The legacy import run is {run.status}, and has no finished hidden workspaces."
        )
    if queries.is_purged(run, work.now):
        raise ConflictError(
            f"The legacy import run is {run.status}, and its hidden workspaces were removed after"
            f" {rules.HIDDEN_WINDOW.days} days. Import the bundle again."
        )
    await executions.release(work, run, finished, keys)
    await executions.notify_owners(work, run, rules.LegacyImportStatus(run.status), finished)
    return await queries.get_run(work, run_id)


async def roll_back(
    work: UnitOfWork, principal: Principal, run_id: Id, body: queries.RollBackLegacyImport
) -> queries.LegacyImport:
    """Roll back the import of an ended run, for 30 days. Raises ConflictError."""
    run = await queries.find_run(work, run_id, lock=True)
    require_status(run, rules.REVERSIBLE, "rolled back")
    entries = await queries.entries_of(work, run_id)
    if body.workspace_ids is None:
        selection = [entry for entry in entries if queries.holds_data(entry)]
    else:
        selection = chosen_entries(entries, body.workspace_ids)
    if queries.is_expired(run, work.now):
        raise ConflictError("The run ended more than 30 days ago and can no longer be rolled back.")
    empty = next((entry for entry in selection if not queries.holds_data(entry)), None)
    if not selection or empty is not None:
        what = "run" if empty is None else f"workspace {empty.source_name}"
        raise ConflictError(
            f"The legacy import run is {run.status}, and the {what} has nothing to roll back."
        )
    if not body.force and all(
        entry.rollback_state == rules.RollbackState.PARTIAL for entry in selection
    ):
        raise ConflictError(
            f"The legacy import run is {run.status}. Set force to also remove data edited since the"
            " import."
        )
    await work.execute(
        sa.update(queries.legacy_import_workspace)
        .where(_entry.id.in_([entry.id for entry in selection]))
        .values(
            rollback_state=rules.RollbackState.REQUESTED.value, last_error=None, updated_at=work.now
        )
    )
    await _go_on(
        work,
        run,
        rules.LegacyImportStatus.ROLLING_BACK,
        "rollback",
        rollback_requested_by_user_id=principal.user_id,
        rollback_reason=body.reason,
        rollback_force=body.force,
    )
    return await queries.get_run(work, run_id)


async def _go_on(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    target: rules.LegacyImportStatus,
    kind: str,
    **values: object,
) -> None:
    """Give a run at rest another execution, of its own id."""
    number = run.executions + 1
    execution = f"{kind}/{number}"
    kept = {"completed_at": None} if target == rules.LegacyImportStatus.IMPORTING else {}
    await move_run(work, run, target, execution=execution, executions=number, **kept, **values)
    await executions.start_execution(work, run.id, execution)


async def move_run(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    target: rules.LegacyImportStatus,
    **values: object,
) -> None:
    """Bring a locked run to another status, which it may reach from its own."""
    moved = await lifecycle.move(
        work, queries.LEGACY_IMPORTS, run.id, target, updated_at=work.now, **values
    )
    assert moved, "the row is locked, and its status was looked at"


def require_status(
    run: queries.LegacyImportRun, statuses: Collection[rules.LegacyImportStatus], action: str
) -> None:
    """Raises WrongStatusError for a run that is in none of the statuses."""
    if run.status not in statuses:
        raise WrongStatusError(run.status, action)


def chosen_entries(
    entries: Sequence[queries.LegacyImportWorkspace], ids: Sequence[Id]
) -> list[queries.LegacyImportWorkspace]:
    """The entries of these ids. Raises NotFoundError for an id of another run or of none."""
    known = {one.id: one for one in entries}
    if any(one not in known for one in ids):
        raise NotFoundError("workspace of the legacy import run")
    return [known[one] for one in dict.fromkeys(ids)]
