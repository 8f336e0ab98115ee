"""Notifications of legacy imports: to those who own what came in, and who asked for it."""

from collections.abc import Sequence

from models.core.access.rules import Role
from models.messages.notifications.commands import Notice, notify
from models.messages.notifications.rules import NotificationKind, about
from models.people.members.queries import members_with
from models.workspace.legacy_imports.rules import LegacyImportStatus
from models.workspace.legacy_imports.tables import LegacyImportRun, LegacyImportWorkspace
from runtime.database import UnitOfWork


async def tell_imported(
    work: UnitOfWork,
    run: LegacyImportRun,
    status: LegacyImportStatus,
    entries: Sequence[LegacyImportWorkspace],
) -> None:
    """Notify, in each workspace that was released, its owners and whoever made the run."""
    for entry in entries:
        place = entry.target_workspace_id
        if place is None:
            continue
        notice = Notice(
            kind=NotificationKind.LEGACY_IMPORT,
            title=about(f"“{entry.source_name}” was imported"),
            data={"legacyImportRunId": str(run.id), "status": status.value},
            key=f"legacy_import/{entry.id}",
        )
        owners = await members_with(work, place, Role.OWNER)
        await notify(work, place, {*owners, run.created_by_user_id}, notice)
