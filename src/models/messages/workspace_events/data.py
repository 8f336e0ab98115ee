"""The `data` of each type of event, as the OpenAPI document describes it (decisions C13).

Triggers of the tables and commands of higher wings write it. The tests hold every event they log
against it.
"""

from collections.abc import Mapping

from models.core.base import JsonObject
from models.core.documented import COUNT, ID, REFERENCE, TEXT, keys, listed
from models.messages.workspace_events.rules import EventType


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
    "EmptyEventData": keys(""),
    "WorkspacePauseEventData": keys("workspaceId", workspaceId=ID, reason=TEXT, rate=COUNT),
    "AutomationPauseEventData": keys("automationId", automationId=ID, reason=TEXT, rate=COUNT),
    "ConnectionPauseEventData": keys("connectionId", connectionId=ID, reason=TEXT, rate=COUNT),
    "MemberEventData": keys("userId role", userId=ID, role=_one_of("Role")),
    "MemberRemovedEventData": keys("userId", userId=ID),
    "NotificationCreatedEventData": keys(
        "notificationId kind", notificationId=ID, kind=_one_of("NotificationKind")
    ),
    "NotificationsEventData": keys("notificationIds", notificationIds=listed(ID)),
    "ItemEventData": keys("itemId kind", itemId=ID, kind=_one_of("ItemKind"), parentItemId=ID),
    "RecordEventData": keys("databaseId recordId", databaseId=ID, recordId=ID, runId=ID),
    "RecordsEventData": keys(
        "databaseId count", databaseId=ID, count=COUNT, recordIds=listed(ID), runId=ID
    ),
    "DatabaseEventData": keys("databaseId", databaseId=ID),
    "FieldsChangedEventData": keys("databaseId fieldIds", databaseId=ID, fieldIds=listed(ID)),
    "ViewsChangedEventData": keys("databaseId viewIds", databaseId=ID, viewIds=listed(ID)),
    "AutomationPublishedEventData": keys("automationId versionId", automationId=ID, versionId=ID),
    "AutomationEventData": keys("automationId", automationId=ID),
    "AutomationRunEventData": keys(
        "automationId runId status source",
        automationId=ID,
        runId=ID,
        status=_one_of("RunStatus"),
        source=_one_of("RunSource"),
    ),
    "ActionRunEventData": keys(
        "actionId runId status", actionId=ID, runId=ID, status=_one_of("ActionRunStatus")
    ),
    "IncidentEventData": keys(
        "incidentId automationId runs",
        incidentId=ID,
        automationId=ID,
        runs=COUNT,
        nodeId=TEXT,
        errorCode=TEXT,
    ),
    "AlertEventData": keys(
        "alertRuleId firingId kind label message",
        alertRuleId=ID,
        firingId=ID,
        automationId=ID,
        connectionId=ID,
        kind=_one_of("AlertKind"),
        label=TEXT,
        message=TEXT,
    ),
    "DataSourceRunEventData": keys(
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
    "ImportStageEventData": keys(
        "importRunId entryId stage", importRunId=ID, entryId=ID, stage=_one_of("ImportStage")
    ),
    "SeedStartedEventData": keys("seedId source", **_SEED),
    "SeedCompletedEventData": keys(f"seedId source {' '.join(_COUNTS)}", **_SEED, **_COUNTS),
    "SeedFailedEventData": keys("seedId source errorCode", **_SEED, errorCode=TEXT),
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
        EventType(f"{noun}.{change}"): f"{title}PauseEventData"
        for noun, title in _PAUSES.items()
        for change in ("paused", "resumed")
    },
}


def data_of(kind: EventType) -> JsonObject:
    """The schema of the data of events of a type."""
    if kind in _OWN:
        return _one_of(_OWN[kind])
    return _BY_NOUN[kind.value.partition(".")[0]]
