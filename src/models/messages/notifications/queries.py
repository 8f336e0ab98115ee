"""Notifications: their table, read always as one user's own, with the pages of their subjects."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, Protocol, Self
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field, model_validator
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core import page_addresses
from models.core.access.rules import Principal, Role, Scope
from models.core.base import Id, Input, JsonObject, Moment, Shape
from models.core.pagination import Listed, PageRequest
from models.core.repository import first_rows_of_each
from models.messages.notification_preferences import NotificationKind
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.postgresql.schema import Timestamp, one_of, table_of

_ORDER = ("user_id", "workspace_id", "created_at", "id")


class Notification(SQLModel, table=True):
    """A message to one user in one workspace."""

    __tablename__ = "notification"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("kind", NotificationKind),
        sa.Index("ix_notification_all", *_ORDER),
        sa.Index("ix_notification_kept", *_ORDER, postgresql_where=sa.text("archived_at IS NULL")),
        sa.Index(
            "ix_notification_unread",
            *_ORDER,
            postgresql_where=sa.text("read_at IS NULL AND archived_at IS NULL"),
        ),
    )

    id: Id = TableField(primary_key=True)
    workspace_id: Id
    user_id: Id
    kind: str
    title: str
    body: str
    item_id: Id | None = None
    record_id: Id | None = None
    run_id: Id | None = None
    actor_user_id: Id | None = None
    data: dict[str, Any] = TableField(sa_type=JSONB)
    read_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    archived_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    created_at: datetime = TableField(sa_type=Timestamp)


notification = table_of(Notification)


MAX_NAMED = 500

NotificationId = Annotated[str, Field(min_length=1, max_length=100)]
"""A text: one that is no id names no notification."""


class _Named(Input):
    """Notifications by their ids."""

    notification_id: NotificationId | None = None
    notification_ids: Annotated[
        list[NotificationId], Field(max_length=MAX_NAMED, default_factory=list)
    ]

    @property
    def ids(self) -> set[str]:
        alone = () if self.notification_id is None else (self.notification_id,)
        return {*self.notification_ids, *alone}


class MarkRead(_Named):
    """Body of mark read: `notificationId`, `notificationIds` or `all`, which goes before ids."""

    all: bool = False

    @property
    def named(self) -> set[str]:
        """The ids that are meant; none of them stands for all."""
        return set() if self.all else self.ids

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.ids and not self.all:
            raise ValueError("Set notificationIds or all.")
        return self


class ArchiveNotifications(_Named):
    """Body of archive: `notificationId`, `notificationIds` or `allRead`, which goes before ids."""

    all_read: bool = False

    @property
    def named(self) -> set[str]:
        """The ids that are meant; none of them stands for all that are read."""
        return set() if self.all_read else self.ids

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.ids and not self.all_read:
            raise ValueError("Set notificationIds or allRead.")
        return self


class NotificationsRead(Shape):
    """The notifications that are read now, and since when the last of them is."""

    notification_ids: list[Id]
    read_at: Moment


class NotificationsArchived(Shape):
    """The notifications that are archived now, and since when the last of them is."""

    notification_ids: list[Id]
    archived_at: Moment


class NotificationBody(Shape):
    """A message to one user in one workspace."""

    id: Id
    workspace_id: Id
    user_id: Id
    kind: NotificationKind
    title: str
    body: str
    item_id: Id | None
    record_id: Id | None
    run_id: Id | None
    actor_user_id: Id | None
    data: JsonObject
    read_at: Moment | None
    archived_at: Moment | None
    created_at: Moment
    page_url: str | None = None
    """The page of what it is about; absolute where the public URL is known."""


class NotificationList(Listed):
    notifications: list[NotificationBody]


class NotificationRow(Protocol):
    """A notification, with the ids of what it is about."""

    id: Id
    workspace_id: Id
    user_id: Id
    kind: str
    title: str
    body: str
    item_id: Id | None
    record_id: Id | None
    run_id: Id | None
    data: JsonObject
    read_at: datetime | None
    created_at: datetime


_OF_RUNS: Mapping[str, Callable[[UUID], str]] = {
    NotificationKind.APPROVAL_REQUEST: page_addresses.run_page,
    NotificationKind.AUTOMATION_FAILED: page_addresses.run_page,
    NotificationKind.AUTOMATION_LOOP: page_addresses.run_page,
    NotificationKind.DATA_SOURCE_FAILED: page_addresses.source_run_page,
    NotificationKind.IMPORT_FINISHED: page_addresses.source_run_page,
    NotificationKind.LEGACY_IMPORT: page_addresses.legacy_import_page,
}
"""The pages of runs, by the kind of the notification that names one."""


def page_of(notification: NotificationRow) -> str | None:
    """The path of the page; None for what has none."""
    if notification.kind == NotificationKind.ALERT:
        return page_addresses.alert_rule_page(
            notification.workspace_id, notification.data["alertRuleId"]
        )
    if notification.run_id is None or notification.kind not in _OF_RUNS:
        return _page_of_subject(notification)
    if "incidentId" in notification.data:
        return page_addresses.incident_page(
            notification.workspace_id, notification.data["incidentId"]
        )
    # An owner of an imported workspace has that, and not the run that made it.
    if notification.kind == NotificationKind.LEGACY_IMPORT and "workspaceId" in notification.data:
        return page_addresses.workspace_page(notification.workspace_id)
    return _OF_RUNS[notification.kind](notification.run_id)


def _page_of_subject(notification: NotificationRow) -> str | None:
    if notification.record_id is not None:
        return page_addresses.record_page(notification.record_id)
    if "changeId" in notification.data:
        return page_addresses.changes_page(notification.workspace_id, notification.data["changeId"])
    if "automationId" in notification.data:
        return page_addresses.automation_page(
            notification.workspace_id, notification.data["automationId"]
        )
    if "webhookEndpointId" in notification.data:
        return page_addresses.webhook_endpoint_page(
            notification.workspace_id, notification.data["webhookEndpointId"]
        )
    if notification.item_id is not None:
        return page_addresses.item_page(notification.item_id)
    return None


def subject_of(notification: NotificationBody) -> tuple[object, ...]:
    """The subject of a notification: others with the same one are shown together."""
    if notification.page_url is not None:
        return (notification.page_url,)
    if notification.item_id is not None:
        return (notification.item_id,)
    return (notification.kind, notification.title)


def readable_places(
    principal: Principal, roles: Mapping[Id, Role], workspace_id: Id | None
) -> list[Id]:
    """The workspaces whose notifications the caller may read; only the one that is named.

    Raises `NotFoundError` for one the caller is not in, `DeniedError` without workspace:read.
    """
    scope = Scope.WORKSPACE_READ
    readable = [place for place, role in roles.items() if scope in principal.usable_scopes(role)]
    if workspace_id is None:
        return readable
    if workspace_id not in roles:
        raise NotFoundError("workspace")
    if workspace_id not in readable:
        raise DeniedError(f"The credential lacks the scope {scope}.")
    return [workspace_id]


async def list_notifications(
    work: UnitOfWork,
    user_id: Id,
    places: Collection[Id],
    page: PageRequest,
    *,
    unread_only: bool = False,
    include_archived: bool = False,
    public_url: str | None = None,
) -> NotificationList:
    """The user's notifications in these workspaces, newest first.

    The addresses of their pages begin with `public_url`, where there is one.
    """
    columns = notification.c

    def newest(place: sa.ColumnElement[Id]) -> sa.Select[Any]:
        own = sa.select(notification).where(
            columns.user_id == user_id, columns.workspace_id == place
        )
        if unread_only:
            own = own.where(columns.read_at.is_(None))
        if not include_archived:
            own = own.where(columns.archived_at.is_(None))
        if page.after is not None:
            own = own.where(sa.tuple_(columns.created_at, columns.id) < sa.tuple_(*page.after))
        return own.order_by(columns.created_at.desc(), columns.id.desc()).limit(page.fetch)

    statement = first_rows_of_each(places, newest)
    order = statement.selected_columns
    shown = await page.descending(work, statement, order.created_at, order.id, of=NotificationRow)
    return NotificationList.of(shown, lambda row: _shown(row, public_url))


def _shown(row: NotificationRow, public_url: str | None) -> NotificationBody:
    body, path = NotificationBody.model_validate(row), page_of(row)
    if path is not None:
        body.page_url = page_addresses.absolute(public_url, path)
    return body


async def count_unread(work: UnitOfWork, user_id: Id, workspace_id: Id, most: int) -> int:
    """The number of notifications of a user in a workspace that wait to be read, up to `most`."""
    columns = notification.c
    waiting = (
        sa.select(columns.id)
        .where(
            columns.user_id == user_id,
            columns.workspace_id == workspace_id,
            columns.read_at.is_(None),
            columns.archived_at.is_(None),
        )
        .limit(most)
        .subquery()
    )
    return int(await work.scalar(sa.select(sa.func.count()).select_from(waiting)))


async def find_notification(work: UnitOfWork, notification_id: Id) -> NotificationRow | None:
    """A notification by its id, whoever it is for; its delivery reads it."""
    this = notification.c.id == notification_id
    return await work.first(sa.select(notification).where(this), of=NotificationRow)
