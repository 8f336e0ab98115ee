"""Going on with a run after its import: another try, or the way back."""

from sqlalchemy import update

from models.core.access.rules import Principal
from models.core.base import Id
from models.workspace.legacy_imports.commands import executions
from models.workspace.legacy_imports.commands.moves import chosen_of, move, require
from models.workspace.legacy_imports.commands.releases import release
from models.workspace.legacy_imports.notices import notify_owners
from models.workspace.legacy_imports.queries import (
    entries_of,
    find_entry,
    find_run,
    get_run,
    holds_data,
    is_expired,
    is_finished,
    is_purged,
)
from models.workspace.legacy_imports.rules import (
    HIDDEN_WINDOW,
    MAX_ATTEMPTS,
    RELEASED_IN,
    RETRIED_IN,
    REVERSIBLE,
    ImportStage,
    LegacyImportStatus,
    RollbackState,
)
from models.workspace.legacy_imports.shapes import (
    LegacyImport,
    RollBackLegacyImport,
)
from models.workspace.legacy_imports.tables import (
    LegacyImportRun,
    legacy_import_workspace,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

_entry = legacy_import_workspace.c


async def retry_workspace(work: UnitOfWork, run_id: Id, entry_id: Id) -> LegacyImport:
    """Go on with a workspace whose import failed, from its last chunk. Raises ConflictError."""
    run = await find_run(work, run_id, lock=True)
    entry = await find_entry(work, run_id, entry_id)
    require(run, RETRIED_IN, "retried")
    if entry.stage != ImportStage.FAILED or entry.rollback_state != RollbackState.NONE:
        raise ConflictError(
            f"The workspace {entry.source_name} is {entry.stage}; only a failed one is retried."
        )
    if entry.attempt >= MAX_ATTEMPTS:
        raise ConflictError(
            f"The workspace {entry.source_name} has failed {entry.attempt} times;"
            " roll it back instead."
        )
    await work.execute(
        update(legacy_import_workspace)
        .where(_entry.id == entry_id)
        .values(
            stage=entry.progress.get("stage", ImportStage.CREATING.value),
            attempt=entry.attempt + 1,
            updated_at=work.now,
        )
    )
    if run.status == LegacyImportStatus.IMPORTING:
        await executions.signal_execution(work, run, "retry_workspace")
    elif run.status == LegacyImportStatus.VERIFYING:
        await move(work, run, LegacyImportStatus.IMPORTING)
        await executions.signal_execution(work, run, "retry_workspace")
    else:
        await _go_on(work, run, LegacyImportStatus.IMPORTING, "retry")
    return await get_run(work, run_id)


async def release_finished(work: UnitOfWork, run_id: Id, keys: KeyRing) -> LegacyImport:
    """Show the workspaces that were verified before a run was cancelled.

    Raises ConflictError where there is none, or when the retention may have removed parts of it.
    """
    run = await find_run(work, run_id, lock=True)
    require(run, RELEASED_IN, "released")
    finished = [one for one in await entries_of(work, run_id) if is_finished(one)]
    if not finished:
        raise ConflictError(
            f"The legacy import run is {run.status}, and no workspace of it is finished and hidden."
        )
    if is_purged(run, work.now):
        raise ConflictError(
            f"The legacy import run is {run.status}, and what it kept hidden was removed after"
            f" {HIDDEN_WINDOW.days} days. Import the bundle again."
        )
    await release(work, run, finished, keys)
    await notify_owners(work, run, LegacyImportStatus(run.status), finished)
    return await get_run(work, run_id)


async def roll_back(
    work: UnitOfWork, principal: Principal, run_id: Id, body: RollBackLegacyImport
) -> LegacyImport:
    """Take back what an ended run has imported, for 30 days. Raises ConflictError."""
    run = await find_run(work, run_id, lock=True)
    require(run, REVERSIBLE, "rolled back")
    entries = await entries_of(work, run_id)
    if body.workspace_ids is None:
        selection = [entry for entry in entries if holds_data(entry)]
    else:
        selection = chosen_of(entries, body.workspace_ids)
    if is_expired(run, work.now):
        raise ConflictError("The legacy import run ended more than 30 days ago; it stays as it is.")
    empty = next((entry for entry in selection if not holds_data(entry)), None)
    if not selection or empty is not None:
        what = "run" if empty is None else f"workspace {empty.source_name}"
        raise ConflictError(
            f"The legacy import run is {run.status}, and the {what} holds nothing to roll back."
        )
    if not body.force and all(entry.rollback_state == RollbackState.PARTIAL for entry in selection):
        raise ConflictError(
            f"The legacy import run is {run.status}; what was changed since is only removed"
            " with force."
        )
    await work.execute(
        update(legacy_import_workspace)
        .where(_entry.id.in_([entry.id for entry in selection]))
        .values(rollback_state=RollbackState.REQUESTED.value, last_error=None, updated_at=work.now)
    )
    await _go_on(
        work,
        run,
        LegacyImportStatus.ROLLING_BACK,
        "rollback",
        rollback_requested_by_user_id=principal.user_id,
        rollback_reason=body.reason,
        rollback_force=body.force,
    )
    return await get_run(work, run_id)


async def _go_on(
    work: UnitOfWork, run: LegacyImportRun, target: LegacyImportStatus, kind: str, **values: object
) -> None:
    """Give a run at rest another execution, of its own id."""
    number = run.executions + 1
    execution = f"{kind}/{number}"
    kept = {"completed_at": None} if target == LegacyImportStatus.IMPORTING else {}
    await move(work, run, target, execution=execution, executions=number, **kept, **values)
    await executions.start_execution(work, run.id, execution)
