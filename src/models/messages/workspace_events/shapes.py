"""The workspace log on the wire, and the `data` of each type of event (interface.md#workspace-log).

Triggers of the tables and commands of higher domains write this data. The tests compare every event
they log with its shape.
"""

from collections.abc import Mapping

from models.core.access.rules import PrincipalType
from models.core.base import Id, JsonObject, Moment, Shape
from models.core.openapi import COUNT, ID, REFERENCE, TEXT, array_of, object_of
from models.core.pagination import Listed
from models.messages.workspace_events.log import EventRow
from models.messages.workspace_events.rules import EventType


class EventActor(Shape):
    """The user or automation that caused it."""

    type: PrincipalType
    user_id: Id | None


class WorkspaceEventBody(Shape):
    """One event; `data` holds ids and small facts."""

    seq: int
    type: EventType
    at: Moment
    actor: EventActor
    data: JsonObject


class WorkspaceEventList(Listed):
    events: list[WorkspaceEventBody]


def event_body(row: EventRow) -> WorkspaceEventBody:
    """A row of the log as the interface shows it."""
    return WorkspaceEventBody(
        seq=row.seq,
        type=EventType(row.type),
        at=row.at,
        actor=EventActor(type=PrincipalType(row.actor_type), user_id=row.actor_user_id),
        data=row.data,
    )


def _one_of(*components: str) -> JsonObject:
    references: list[JsonObject] = [{REFERENCE: name} for name in components]
    return references[0] if len(references) == 1 else {"anyOf": references}


_SOURCE: JsonObject = {"type": "string", "enum": ["template", "draft"]}
_SEED = {"seedId": ID, "source": _SOURCE, "templateKey": TEXT}
_COUNTS = dict.fromkeys(
    (
        *("databaseCount", "recordCount", "viewCount", "pageCount", "dashboardCount"),
        *("formCount", "automationCount"),
    ),
    COUNT,
)

SHAPES: Mapping[str, JsonObject] = {
    "EmptyEventData": object_of(""),
    "WorkspacePauseEventData": object_of("workspaceId", workspaceId=ID, reason=TEXT, rate=COUNT),
    "AutomationPauseEventData": object_of("automationId", automationId=ID, reason=TEXT, rate=COUNT),
    "ConnectionPauseEventData": object_of("connectionId", connectionId=ID, reason=TEXT, rate=COUNT),
    "MemberEventData": object_of("userId role", userId=ID, role=_one_of("Role")),
    "MemberRemovedEventData": object_of("userId", userId=ID),
    "NotificationCreatedEventData": object_of(
        "notificationId kind", notificationId=ID, kind=_one_of("NotificationKind")
    ),
    "NotificationsEventData": object_of("notificationIds", notificationIds=array_of(ID)),
    "ItemEventData": object_of("itemId kind", itemId=ID, kind=_one_of("ItemKind"), parentItemId=ID),
    "RecordEventData": object_of("databaseId recordId", databaseId=ID, recordId=ID, runId=ID),
    "RecordsEventData": object_of(
        "databaseId count", databaseId=ID, count=COUNT, recordIds=array_of(ID), runId=ID
    ),
    "DatabaseEventData": object_of("databaseId", databaseId=ID),
    "FieldsChangedEventData": object_of(
        "databaseId fieldIds", databaseId=ID, fieldIds=array_of(ID)
    ),
    "ViewsChangedEventData": object_of("databaseId viewIds", databaseId=ID, viewIds=array_of(ID)),
    "AutomationPublishedEventData": object_of(
        "automationId versionId", automationId=ID, versionId=ID
    ),
    "AutomationEventData": object_of("automationId", automationId=ID),
    "AutomationRunEventData": object_of(
        "automationId runId status source",
        automationId=ID,
        runId=ID,
        status=_one_of("RunStatus"),
        source=_one_of("RunSource"),
    ),
    "ActionRunEventData": object_of(
        "actionId runId status", actionId=ID, runId=ID, status=_one_of("ActionRunStatus")
    ),
    "IncidentEventData": object_of(
        "incidentId automationId runs",
        incidentId=ID,
        automationId=ID,
        runs=COUNT,
        nodeId=TEXT,
        errorCode=TEXT,
    ),
    "AlertEventData": object_of(
        "alertRuleId firingId kind label message",
        alertRuleId=ID,
        firingId=ID,
        automationId=ID,
        connectionId=ID,
        kind=_one_of("AlertKind"),
        label=TEXT,
        message=TEXT,
    ),
    "DataSourceRunEventData": object_of(
        "runId trigger status",
        cellsSkipped=COUNT,
        columnsAdded=COUNT,
        columnsChanged=COUNT,
        columnsMissing=COUNT,
        dataSourceId=ID,
        runId=ID,
        trigger=_one_of("RunTrigger"),
        status=_one_of("DataSourceRunStatus"),
    ),
    "ImportStageEventData": object_of(
        "importRunId entryId stage", importRunId=ID, entryId=ID, stage=_one_of("ImportStage")
    ),
    "SeedStartedEventData": object_of("seedId source", **_SEED),
    "SeedCompletedEventData": object_of(f"seedId source {' '.join(_COUNTS)}", **_SEED, **_COUNTS),
    "SeedFailedEventData": object_of("seedId source errorCode", **_SEED, errorCode=TEXT),
}
"""The components; several types may share one."""

_PAUSES = {"workspace": "Workspace", "automation": "Automation", "connection": "Connection"}
_BY_NOUN = {
    "item": _one_of("ItemEventData"),
    "record": _one_of("RecordEventData", "RecordsEventData"),
    "database": _one_of("DatabaseEventData"),
    "run": _one_of("AutomationRunEventData", "ActionRunEventData"),
    "incident": _one_of("IncidentEventData"),
    "alert": _one_of("AlertEventData"),
    "data_source": _one_of("DataSourceRunEventData"),
    "import": _one_of("ImportStageEventData"),
}
_OWN = {
    EventType.WORKSPACE_UPDATED: "EmptyEventData",
    EventType.WORKSPACE_DELETED: "EmptyEventData",
    EventType.MEMBER_ADDED: "MemberEventData",
    EventType.MEMBER_UPDATED: "MemberEventData",
    EventType.MEMBER_REMOVED: "MemberRemovedEventData",
    EventType.NOTIFICATION_CREATED: "NotificationCreatedEventData",
    EventType.NOTIFICATION_READ: "NotificationsEventData",
    EventType.NOTIFICATION_ARCHIVED: "NotificationsEventData",
    EventType.DATABASE_FIELDS_CHANGED: "FieldsChangedEventData",
    EventType.DATABASE_VIEWS_CHANGED: "ViewsChangedEventData",
    EventType.AUTOMATION_PUBLISHED: "AutomationPublishedEventData",
    EventType.AUTOMATION_BREAKER_OPENED: "AutomationEventData",
    EventType.AUTOMATION_BREAKER_CLOSED: "AutomationEventData",
    EventType.STARTER_SEED_STARTED: "SeedStartedEventData",
    EventType.STARTER_SEED_COMPLETED: "SeedCompletedEventData",
    EventType.STARTER_SEED_FAILED: "SeedFailedEventData",
    **{
        EventType(f"{resource}.{change}"): f"{title}PauseEventData"
        for resource, title in _PAUSES.items()
        for change in ("paused", "resumed")
    },
}


def data_of(kind: EventType) -> JsonObject:
    """The schema of the data of events of a type."""
    if kind in _OWN:
        return _one_of(_OWN[kind])
    return _BY_NOUN[kind.value.partition(".")[0]]
