"""Types of events in the log (interface.md#workspace-log), and the scope that reads them."""

from collections.abc import Set
from enum import StrEnum

from models.core.access.rules import Scope


class EventType(StrEnum):
    WORKSPACE_UPDATED = "workspace.updated"
    WORKSPACE_DELETED = "workspace.deleted"
    WORKSPACE_PAUSED = "workspace.paused"
    WORKSPACE_RESUMED = "workspace.resumed"
    MEMBER_ADDED = "member.added"
    MEMBER_UPDATED = "member.updated"
    MEMBER_REMOVED = "member.removed"
    NOTIFICATION_CREATED = "notification.created"
    NOTIFICATION_READ = "notification.read"
    NOTIFICATION_ARCHIVED = "notification.archived"
    ITEM_CREATED = "item.created"
    ITEM_UPDATED = "item.updated"
    ITEM_MOVED = "item.moved"
    ITEM_ACCESS_CHANGED = "item.access_changed"
    ITEM_ARCHIVED = "item.archived"
    ITEM_UNARCHIVED = "item.unarchived"
    ITEM_DELETED = "item.deleted"
    ITEM_RESTORED = "item.restored"
    RECORD_CREATED = "record.created"
    RECORD_UPDATED = "record.updated"
    RECORD_ARCHIVED = "record.archived"
    RECORD_RESTORED = "record.restored"
    RECORD_DELETED = "record.deleted"
    DATABASE_CREATED = "database.created"
    DATABASE_UPDATED = "database.updated"
    DATABASE_FIELDS_CHANGED = "database.fields_changed"
    DATABASE_VIEWS_CHANGED = "database.views_changed"
    DATABASE_DELETED = "database.deleted"
    DATABASE_RESTORED = "database.restored"
    AUTOMATION_PUBLISHED = "automation.published"
    AUTOMATION_PAUSED = "automation.paused"
    AUTOMATION_RESUMED = "automation.resumed"
    AUTOMATION_BREAKER_OPENED = "automation.breaker_opened"
    AUTOMATION_BREAKER_CLOSED = "automation.breaker_closed"
    CONNECTION_PAUSED = "connection.paused"
    CONNECTION_RESUMED = "connection.resumed"
    RUN_STATUS = "run.status"
    INCIDENT_OPENED = "incident.opened"
    INCIDENT_GREW = "incident.grew"
    INCIDENT_CLOSED = "incident.closed"
    ALERT_FIRED = "alert.fired"
    ALERT_RESOLVED = "alert.resolved"
    DATA_SOURCE_RUN = "data_source.run"
    IMPORT_STAGE = "import.stage"
    STARTER_SEED_STARTED = "onboarding.starter_seed.started"
    STARTER_SEED_COMPLETED = "onboarding.starter_seed.completed"
    STARTER_SEED_FAILED = "onboarding.starter_seed.failed"


_READ_BY = {
    "workspace": Scope.WORKSPACE_READ,
    "member": Scope.MEMBERS_READ,
    "notification": Scope.WORKSPACE_READ,
    "item": Scope.RESOURCES_READ,
    "record": Scope.RECORDS_READ,
    "database": Scope.DATABASES_READ,
    "automation": Scope.AUTOMATIONS_READ,
    "connection": Scope.INTEGRATIONS_READ,
    "run": Scope.AUTOMATIONS_READ,
    "incident": Scope.AUTOMATIONS_READ,
    "alert": Scope.AUTOMATIONS_READ,
    "data_source": Scope.DATA_SOURCES_READ,
    "import": Scope.WORKSPACE_READ,
    "onboarding": Scope.WORKSPACE_READ,
}
"""By the resource that a type begins with, what a credential must hold to read such events."""

MEMBERSHIP = frozenset(
    {
        EventType.MEMBER_ADDED,
        EventType.MEMBER_UPDATED,
        EventType.MEMBER_REMOVED,
        EventType.WORKSPACE_DELETED,
    }
)
"""After these, who is in a workspace must be asked anew."""


def types_read_with(scopes: Set[Scope]) -> frozenset[str]:
    """The types of events that these scopes read."""
    return frozenset(
        type_.value for type_ in EventType if _READ_BY[type_.value.partition(".")[0]] in scopes
    )
