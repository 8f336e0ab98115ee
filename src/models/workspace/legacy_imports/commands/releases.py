"""Making visible what is imported and verified."""

from collections.abc import Sequence

from sqlalchemy import update

from models.people.workspaces.commands import reveal_workspace
from models.workspace.bundles.applying import conclude, show
from models.workspace.legacy_imports.commands.entries import Held
from models.workspace.legacy_imports.rules import LifecycleState
from models.workspace.legacy_imports.tables import (
    LegacyImportRun,
    LegacyImportWorkspace,
    legacy_import_workspace,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


async def release(
    work: UnitOfWork,
    run: LegacyImportRun,
    entries: Sequence[LegacyImportWorkspace],
    keys: KeyRing,
) -> None:
    """Let people see the workspaces of these entries that are hidden."""
    for entry in entries:
        if entry.lifecycle_state != LifecycleState.HIDDEN or entry.target_workspace_id is None:
            continue
        target = Held(run, entry).target(keys)
        if entry.creates:
            await reveal_workspace(work, entry.target_workspace_id, run.created_by_user_id)
        else:
            await show(work, target)
        await conclude(work, target)
        await work.execute(
            update(legacy_import_workspace)
            .where(legacy_import_workspace.c.id == entry.id)
            .values(
                lifecycle_state=LifecycleState.LIVE.value,
                # What is changed from here on is somebody's.
                imported_at=work.now,
                updated_at=work.now,
            )
        )
