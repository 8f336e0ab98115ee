"""The log of a workspace: its table, appended to and read, only as far as it is whole.

Below is the log on the wire, with the `data` of each type of event (interface.md#workspace-log).
Triggers of the tables and commands of higher domains write this data. The tests compare every event
they log with its shape.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id, JsonObject, Moment, Shape
from models.core.openapi import COUNT, ID, REFERENCE, TEXT, array_of, object_of
from models.core.pagination import Listed
from models.core.purging import MAX_ROWS
from models.messages.workspace_events.rules import EventType
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement


class WorkspaceEvent(SQLModel, table=True):
    """One event, written by the transaction it tells of; triggers of the tables write most.

    `seq` is given by a trigger as the row is inserted, so a smaller one may be committed later:
    `log.heads` says up to where a log is whole (docs/adr/0046). With an `audience_user_id` only
    that user sees it, with an `item_id` who sees the item. It refers to nothing by a constraint:
    every writer would pay for the look.
    """

    __tablename__ = "workspace_event"
    __table_args__ = (sa.Index("ix_workspace_event_workspace_id_seq", "workspace_id", "seq"),)

    seq: int = Field(
        sa_type=sa.BigInteger, sa_column_kwargs={"server_default": sa.text("0")}, primary_key=True
    )
    workspace_id: Id
    type: str
    at: datetime = Field(sa_type=Timestamp)
    actor_type: str
    actor_user_id: Id | None = None
    audience_user_id: Id | None = None
    item_id: Id | None = None
    data: dict[str, Any] = Field(sa_type=JSONB)


workspace_event = table_of(WorkspaceEvent)


class EventRow(Protocol):
    """An event, for its `audience_user_id` alone, or for all who see its item, if it has one."""

    seq: int
    workspace_id: Id
    type: str
    at: datetime
    actor_type: str
    actor_user_id: Id | None
    audience_user_id: Id | None
    item_id: Id | None
    data: dict[str, Any]


async def append_event(
    work: UnitOfWork,
    principal: Principal,
    workspace_id: Id,
    kind: EventType,
    data: JsonObject,
    *,
    audience_user_id: Id | None = None,
    item_id: Id | None = None,
) -> None:
    """Append one event, for one user alone, or for who sees the item."""
    await work.execute(
        sa.insert(workspace_event).values(
            workspace_id=workspace_id,
            type=kind.value,
            at=work.now,
            actor_type=principal.type.value,
            actor_user_id=principal.person,
            audience_user_id=audience_user_id,
            item_id=item_id,
            data=data,
        )
    )


async def purge_events(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Delete up to `limit` events from before a moment; return the number. Repeat until 0."""
    # Numbers grow with time, near enough: the oldest events are those with the least.
    oldest = (
        sa.select(workspace_event.c.seq, workspace_event.c.at)
        .order_by(workspace_event.c.seq)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .cte("oldest")
    )
    old = sa.select(oldest.c.seq).where(oldest.c.at < before)
    return (
        await work.execute(sa.delete(workspace_event).where(workspace_event.c.seq.in_(old)))
    ).rowcount


async def purge_events_of(work: UnitOfWork, workspace_id: Id, limit: int = MAX_ROWS) -> int:
    """Delete up to `limit` events of a deleted workspace; return the number. Repeat until 0."""
    some = sa.select(workspace_event.c.seq).where(workspace_event.c.workspace_id == workspace_id)
    of_it = sa.delete(workspace_event).where(workspace_event.c.seq.in_(some.limit(limit)))
    return (await work.execute(of_it)).rowcount


_event = workspace_event.c

_MOST_LOOKED_AT = 20_000
"""Events of a workspace, the newest ones, among which its role changes are looked for."""


class RoleChange(Protocol):
    """A member's new role, when it was given and by whom."""

    at: datetime
    actor_user_id: Id | None
    user_id: str
    role: str


async def role_changes(work: UnitOfWork, workspace_id: Id) -> Sequence[RoleChange]:
    """The latest changes of roles in a workspace, the newest first."""
    of_workspace = sa.select(workspace_event).where(_event.workspace_id == workspace_id)
    newest = of_workspace.order_by(_event.seq.desc()).limit(_MOST_LOOKED_AT).subquery()
    user_id, role = newest.c.data["userId"].astext, newest.c.data["role"].astext
    columns = newest.c.at, newest.c.actor_user_id, user_id.label("user_id"), role.label("role")
    changes = sa.select(*columns).where(newest.c.type == EventType.MEMBER_UPDATED)
    return await work.rows(changes.order_by(newest.c.seq.desc()), of=RoleChange)


_HEADS = PreparedStatement(
    sa.select(sa.column("workspace_id"), sa.column("head")).select_from(
        sa.func.workspace_event_heads(sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid)))
    )
)


class _Head(Protocol):
    workspace_id: Id
    head: int


async def heads(work: Work, workspace_ids: Collection[Id]) -> Mapping[Id, int]:
    """For each workspace the number up to which nothing can be added to its log any more.

    A number is given when an event is written, and seen when its transaction commits: a smaller one
    may come later. The number below which nothing is still to come is known, because writers hold a
    shared lock that names a number below their own (docs/adr/0046). The statement after it must see
    what is committed then, so both run in a unit of work for reads without a common snapshot.
    """
    rows: Sequence[_Head] = await _HEADS.rows(work, {"workspace_ids": list(workspace_ids)})
    return {row.workspace_id: row.head for row in rows}


async def head(work: Work, workspace_id: Id) -> int:
    """The number up to which nothing can be added to the log of a workspace any more."""
    return (await heads(work, [workspace_id]))[workspace_id]


_BETWEEN = PreparedStatement(
    sa.select(workspace_event)
    .where(
        _event.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _event.seq > sa.bindparam("after", type_=sa.BigInteger),
        _event.seq <= sa.bindparam("until", type_=sa.BigInteger),
        _event.type == sa.func.any(sa.bindparam("types", type_=sa.ARRAY(sa.Text))),
        sa.or_(
            _event.audience_user_id.is_(None),
            _event.audience_user_id
            == sa.func.any(sa.bindparam("user_ids", type_=sa.ARRAY(sa.Uuid))),
        ),
    )
    .order_by(_event.seq)
    .limit(sa.bindparam("most", type_=sa.BigInteger)),
    EventRow,
)


async def events_between(
    work: Work,
    workspace_id: Id,
    after: int,
    until: int,
    *,
    types: Collection[str],
    user_ids: Collection[Id],
    most: int,
) -> Sequence[EventRow]:
    """The first events of these types in a part of a log that is whole, in their order.

    Of those for one user alone, the ones for these users. Who sees the items they are about is
    left to the caller.
    """
    parameters: dict[str, Any] = {
        "workspace_id": workspace_id,
        "after": after,
        "until": until,
        "types": sorted(types),
        "user_ids": list(user_ids),
        "most": most,
    }
    return await _BETWEEN.rows(work, parameters)


def events_of_dry_run(workspace_id: str) -> sa.Select[Any]:
    """The events for all members that a dry run has written, counted by type and item.

    `workspace_id` names the parameter. Their numbers are negative, and only the dry run sees them.
    """
    return (
        sa.select(_event.type, _event.item_id, sa.func.count().label("number"))
        .where(
            _event.workspace_id == sa.bindparam(workspace_id, type_=sa.Uuid),
            _event.seq < 0,
            _event.audience_user_id.is_(None),
        )
        .group_by(_event.type, _event.item_id)
    )


_END_OF_NEXT = PreparedStatement(
    sa.select(
        sa.func.max(sa.column("seq")).label("seq"), sa.func.count().label("count")
    ).select_from(
        sa.select(_event.seq)
        .where(
            _event.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
            _event.seq > sa.bindparam("after", type_=sa.BigInteger),
            _event.seq <= sa.bindparam("until", type_=sa.BigInteger),
        )
        .order_by(_event.seq)
        .limit(sa.bindparam("most", type_=sa.BigInteger))
        .subquery()
    )
)


async def end_of_next(work: Work, workspace_id: Id, after: int, until: int, *, most: int) -> int:
    """The number of the last of the next `most` events of a log, or `until` when it has fewer."""
    parameters = {"workspace_id": workspace_id, "after": after, "until": until, "most": most}
    (row,) = await _END_OF_NEXT.rows(work, parameters)
    return until if row.count < most else int(row.seq)


def has_grown(
    workspace_id: sa.ColumnElement[Any],
    after: sa.ColumnElement[Any],
    before: datetime | None = None,
) -> sa.ColumnElement[bool]:
    """True when a log has events for all members behind a number, and before a moment."""
    # An EXISTS may become a join, which reads all logs where statistics are older than they are.
    return (
        sa.select(sa.true())
        .where(
            _event.workspace_id == workspace_id,
            _event.seq > after,
            sa.true() if before is None else _event.at < before,
            _event.audience_user_id.is_(None),
        )
        .limit(1)
        .scalar_subquery()
    )


_GROWN = PreparedStatement(
    sa.select(_event.workspace_id)
    .distinct()
    .where(
        _event.seq > sa.bindparam("after", type_=sa.BigInteger),
        _event.seq <= sa.bindparam("until", type_=sa.BigInteger),
        _event.workspace_id == sa.func.any(sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid))),
    )
)


async def grown_since(
    work: Work, workspace_ids: Collection[Id], after: int, until: int
) -> frozenset[Id]:
    """The workspaces among these that have events in a part of the numbers."""
    parameters = {"workspace_ids": list(workspace_ids), "after": after, "until": until}
    return frozenset(row.workspace_id for row in await _GROWN.rows(work, parameters))


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
        status=_one_of("JobStatus"),
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
