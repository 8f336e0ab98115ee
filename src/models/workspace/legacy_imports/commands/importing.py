"""Making the workspace that an entry goes to, and going from stage to stage."""

from collections.abc import Collection, Sequence

from models.core.bundles.kinds import BundleKind
from models.people.workspaces.commands import create_hidden_workspace
from models.people.workspaces.queries import is_open_workspace
from models.workspace.legacy_imports.commands.entries import (
    Held,
    described,
    enter_stage,
    findings_of,
    record,
    target_workspace,
)
from models.workspace.legacy_imports.rules import IMPORT_STAGES, ImportStage, LifecycleState
from models.workspace.legacy_imports.tables import LegacyImportWorkspace
from runtime.database import UnitOfWork
from runtime.errors import ConflictError


async def make_workspace(work: UnitOfWork, locked_entry: Held) -> None:
    """Have the workspace that an entry goes to. Raises ConflictError when it is gone."""
    entry = locked_entry.entry
    workspace_id = target_workspace(entry)
    if entry.creates:
        await create_hidden_workspace(
            work, workspace_id, entry.source_name, locked_entry.run.created_by_user_id
        )
    elif not await is_open_workspace(work, workspace_id):
        raise ConflictError("The workspace that it should go to does not exist any more.")
    await record(
        work,
        entry.id,
        target_workspace_id=workspace_id,
        lifecycle_state=LifecycleState.HIDDEN.value,
        last_error=None,
    )


def kinds_for(entry: LegacyImportWorkspace, kinds: Sequence[BundleKind]) -> list[BundleKind]:
    """The kinds among these that come in; imports change no members of an existing workspace."""
    return [kind for kind in kinds if entry.creates or not kind.of_members]


async def end_stage(
    work: UnitOfWork, locked_entry: Held, filled_stages: Collection[str]
) -> ImportStage:
    """All of a stage is applied; the next of the `filled_stages` follows, or verification."""
    behind = IMPORT_STAGES[IMPORT_STAGES.index(locked_entry.stage) + 1 :]
    following = next((one for one in behind if one in filled_stages), ImportStage.VERIFYING)
    if following != ImportStage.VERIFYING:
        await enter_stage(work, locked_entry, following)
        return following
    found = described(findings_of(locked_entry.entry).warnings)
    warnings = list(dict.fromkeys([*locked_entry.entry.warnings, *found]))
    await enter_stage(work, locked_entry, following, warnings=warnings, imported_at=work.now)
    return following
