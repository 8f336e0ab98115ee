"""Reading notifications: always one user's own, in the workspaces they may read."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, tuple_

from models.core.access.rules import Principal, Role, Scope
from models.core.base import Id
from models.core.lines import of_each
from models.core.page_addresses import absolute
from models.core.pagination import PageRequest
from models.messages.notifications.pages import page_of
from models.messages.notifications.rows import NotificationRow
from models.messages.notifications.shapes import NotificationBody, NotificationList
from models.messages.notifications.tables import notification
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError


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

    def newest(place: ColumnElement[Id]) -> Select[Any]:
        own = select(notification).where(columns.user_id == user_id, columns.workspace_id == place)
        if unread_only:
            own = own.where(columns.read_at.is_(None))
        if not include_archived:
            own = own.where(columns.archived_at.is_(None))
        if page.after is not None:
            own = own.where(tuple_(columns.created_at, columns.id) < tuple_(*page.after))
        return own.order_by(columns.created_at.desc(), columns.id.desc()).limit(page.fetch)

    statement = of_each(places, newest)
    order = statement.selected_columns
    shown = await page.descending(work, statement, order.created_at, order.id, of=NotificationRow)
    return NotificationList(
        notifications=[_shown(row, public_url) for row in shown.items],
        cursor=shown.cursor,
    )


def _shown(row: NotificationRow, public_url: str | None) -> NotificationBody:
    body, path = NotificationBody.model_validate(row), page_of(row)
    if path is not None:
        body.page_url = absolute(public_url, path)
    return body


async def count_unread(work: UnitOfWork, user_id: Id, workspace_id: Id, most: int) -> int:
    """The number of notifications of a user in a workspace that wait to be read, up to `most`."""
    columns = notification.c
    waiting = (
        select(columns.id)
        .where(
            columns.user_id == user_id,
            columns.workspace_id == workspace_id,
            columns.read_at.is_(None),
            columns.archived_at.is_(None),
        )
        .limit(most)
        .subquery()
    )
    return int(await work.scalar(select(func.count()).select_from(waiting)))


async def find_notification(work: UnitOfWork, notification_id: Id) -> NotificationRow | None:
    """A notification by its id, whoever it is for; its delivery reads it."""
    this = notification.c.id == notification_id
    return await work.first(select(notification).where(this), of=NotificationRow)
