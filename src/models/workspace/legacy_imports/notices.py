"""Notifications of legacy imports: to whoever made the run, and the owners of what came in."""

from collections.abc import Mapping, Sequence

from models.core.access.rules import Role
from models.core.base import JsonObject
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.notifications.rules import about
from models.people.members.queries import longest_workspace, members_with
from models.workspace.legacy_imports.queries import entries_of
from models.workspace.legacy_imports.rules import LegacyImportStatus
from models.workspace.legacy_imports.tables import LegacyImportRun, LegacyImportWorkspace
from runtime.database import UnitOfWork

_TITLES: Mapping[LegacyImportStatus, str] = {
    LegacyImportStatus.AWAITING_REVIEW: "A legacy import awaits review",
    LegacyImportStatus.COMPLETED: "A legacy import is completed",
    LegacyImportStatus.COMPLETED_WITH_WARNINGS: "A legacy import is completed, with warnings",
    LegacyImportStatus.FAILED: "A legacy import failed",
    LegacyImportStatus.CANCELLED: "A legacy import was cancelled",
    LegacyImportStatus.ROLLED_BACK: "A legacy import was rolled back",
    LegacyImportStatus.ROLLBACK_FAILED: "The rollback of a legacy import failed",
}
"""The titles for whoever made a run: that a person has the next move, and each end."""


async def notify_maker(
    work: UnitOfWork, run: LegacyImportRun, status: LegacyImportStatus, reason: str = ""
) -> None:
    """Notify whoever made a run of the status that it comes to, if it is one they are told of.

    A run belongs to no workspace: the notification stands where its user has been a member longest.
    A status that is reached again by another dry run is not told again.
    """
    if status not in _TITLES:
        return
    entries = await entries_of(work, run.id)
    made = [one.target_workspace_id for one in entries if one.creates and one.target_workspace_id]
    place = await longest_workspace(work, run.created_by_user_id, apart_from=made)
    if place is None:
        return
    names = ", ".join(one.source_name for one in entries if one.selected)
    notice = Notice(
        kind=NotificationKind.LEGACY_IMPORT,
        title=_TITLES[status],
        body=about(reason or names),
        run_id=run.id,
        data=_data(run, status),
        key=f"legacy_import/{run.id}/{run.executions}/{status}",
    )
    await notify(work, place, [run.created_by_user_id], notice)


async def notify_owners(
    work: UnitOfWork,
    run: LegacyImportRun,
    status: LegacyImportStatus,
    entries: Sequence[LegacyImportWorkspace],
) -> None:
    """Notify, in each workspace that was released, its owners; not who hears of the run itself."""
    for entry in entries:
        place = entry.target_workspace_id
        if place is None:
            continue
        notice = Notice(
            kind=NotificationKind.LEGACY_IMPORT,
            title=about(f"“{entry.source_name}” was imported"),
            run_id=run.id,
            # They have their workspace; the page of the import is for administrators.
            data={**_data(run, status), "workspaceId": str(place)},
            key=f"legacy_import/{entry.id}",
        )
        owners = await members_with(work, place, Role.OWNER)
        await notify(work, place, {*owners} - {run.created_by_user_id}, notice)


def _data(run: LegacyImportRun, status: LegacyImportStatus) -> JsonObject:
    return {"legacyImportRunId": str(run.id), "status": status.value}
