"""The page of the console that shows what a notification is about."""

from collections.abc import Callable, Mapping
from uuid import UUID

from models.core.page_addresses import (
    alert_rule_page,
    incident_page,
    legacy_import_page,
    run_page,
    source_run_page,
    workspace_page,
)
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.rows import NotificationRow

_OF_RUNS: Mapping[str, Callable[[UUID], str]] = {
    NotificationKind.APPROVAL_REQUEST: run_page,
    NotificationKind.AUTOMATION_FAILED: run_page,
    NotificationKind.AUTOMATION_LOOP: run_page,
    NotificationKind.DATA_SOURCE_FAILED: source_run_page,
    NotificationKind.IMPORT_FINISHED: source_run_page,
    NotificationKind.LEGACY_IMPORT: legacy_import_page,
}
"""The pages of runs, by the kind of the notification that names one."""


def page_of(notification: NotificationRow) -> str | None:
    """The path of the page; None for what has none."""
    if notification.kind == NotificationKind.ALERT:
        return alert_rule_page(notification.workspace_id, notification.data["alertRuleId"])
    if notification.run_id is None or notification.kind not in _OF_RUNS:
        return None
    if "incidentId" in notification.data:
        return incident_page(notification.workspace_id, notification.data["incidentId"])
    # An owner of an imported workspace has that, and not the run that made it.
    if notification.kind == NotificationKind.LEGACY_IMPORT and "workspaceId" in notification.data:
        return workspace_page(notification.workspace_id)
    return _OF_RUNS[notification.kind](notification.run_id)
