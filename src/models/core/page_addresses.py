"""Addresses of the pages that show something to people."""

from uuid import UUID


def run_page(run_id: UUID) -> str:
    """The page of an automation run, on the host that serves the API."""
    return f"/runs/{run_id}"


def incident_page(workspace_id: UUID, incident_id: str) -> str:
    return f"/workspaces/{workspace_id}/incidents/{incident_id}"


def alert_rule_page(workspace_id: UUID, alert_rule_id: str) -> str:
    return f"/workspaces/{workspace_id}/alert-rules/{alert_rule_id}"


def changes_page(workspace_id: UUID, change_id: str) -> str:
    """The page of a change set."""
    return f"/workspaces/{workspace_id}/changes/{change_id}"


def automation_page(workspace_id: UUID, automation_id: str) -> str:
    return f"/workspaces/{workspace_id}/automations/{automation_id}"


def record_page(record_id: UUID) -> str:
    return f"/records/{record_id}"


def item_page(item_id: UUID) -> str:
    """The page that leads to an item."""
    return f"/items/{item_id}"


def webhook_endpoint_page(workspace_id: UUID, endpoint_id: str) -> str:
    return f"/workspaces/{workspace_id}/settings/webhooks/{endpoint_id}"


def notification_preferences_page(workspace_id: UUID) -> str:
    """The page on which members choose the channels of notifications."""
    return f"/workspaces/{workspace_id}/settings/notifications"


def source_run_page(run_id: UUID) -> str:
    """The page of a refresh or an import."""
    return f"/data-source-runs/{run_id}"


def legacy_import_page(run_id: UUID) -> str:
    return f"/legacy-imports/{run_id}"


def workspace_page(workspace_id: UUID) -> str:
    """The first page of a workspace."""
    return f"/workspaces/{workspace_id}"


def absolute(public_url: str | None, path: str) -> str:
    """The address that works from elsewhere; just the path where no one told the public URL."""
    return f"{public_url or ''}{path}"
