"""Marking notifications read and archiving them, each told once in its workspace's log."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select, update

from models.core.access.rules import Principal
from models.core.base import Id
from models.messages.notifications.shapes import (
    ArchiveNotifications,
    MarkRead,
    NotificationsArchived,
    NotificationsRead,
)
from models.messages.notifications.tables import notification
from models.messages.workspace_events.appending import append_event
from models.messages.workspace_events.rules import EventType
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

MOST_AT_ONCE = 10_000
"""Notifications that `all` and `allRead` reach in one call, the newest first."""

_told = notification.c


async def mark_read(
    work: UnitOfWork, principal: Principal, places: Collection[Id], body: MarkRead
) -> NotificationsRead:
    """Mark the principal's notifications in these workspaces read.

    Of ids that name nothing readable a single one raises `NotFoundError`; others are left out.
    """
    found = await _held(work, principal, places, body.ids, _told.read_at.is_(None))
    unread = [row for row in found if row.read_at is None]
    await _change(work, principal, unread, EventType.NOTIFICATION_READ, read_at=work.now)
    return NotificationsRead(
        notification_ids=[row.id for row in found],
        read_at=_since(work, [row.read_at for row in found]),
    )


async def archive(
    work: UnitOfWork, principal: Principal, places: Collection[Id], body: ArchiveNotifications
) -> NotificationsArchived:
    """Archive what is read of the principal's notifications; what is unread is left as it is.

    Of ids that name nothing readable a single one raises `NotFoundError`; others are left out.
    """
    waiting = _told.read_at.is_not(None) & _told.archived_at.is_(None)
    found = await _held(work, principal, places, body.ids, waiting)
    read = [row for row in found if row.read_at is not None]
    fresh = [row for row in read if row.archived_at is None]
    await _change(work, principal, fresh, EventType.NOTIFICATION_ARCHIVED, archived_at=work.now)
    return NotificationsArchived(
        notification_ids=[row.id for row in read],
        archived_at=_since(work, [row.archived_at for row in read]),
    )


async def _held(
    work: UnitOfWork,
    principal: Principal,
    places: Collection[Id],
    ids: Collection[Id],
    waiting: ColumnElement[bool],
) -> Sequence[Row[Any]]:
    """The notifications that are meant, locked, in the order of their ids."""
    own = (_told.user_id == principal.user_id, _told.workspace_id.in_(places))
    columns = select(_told.id, _told.workspace_id, _told.read_at, _told.archived_at).where(*own)
    if ids:
        meant = columns.where(_told.id.in_(sorted(ids)))
    else:
        newest = select(_told.id).where(*own, waiting).order_by(_told.created_at.desc())
        meant = columns.where(_told.id.in_(newest.limit(MOST_AT_ONCE)), waiting)
    found = await work.rows(meant.order_by(_told.id).with_for_update())
    if len(ids) == 1 and not found:
        raise NotFoundError("notification")
    return found


async def _change(
    work: UnitOfWork,
    principal: Principal,
    rows: Sequence[Row[Any]],
    kind: EventType,
    **values: datetime,
) -> None:
    """Write the change of locked rows, and one event of it in the log of each workspace."""
    if not rows:
        return
    ids = [row.id for row in rows]
    await work.execute(update(notification).where(_told.id.in_(ids)).values(values))
    by_place: dict[Id, list[str]] = defaultdict(list)
    for row in rows:
        by_place[row.workspace_id].append(str(row.id))
    for place in sorted(by_place):
        data = {"notificationIds": by_place[place]}
        await append_event(work, principal, place, kind, data, audience_user_id=principal.user_id)


def _since(work: UnitOfWork, moments: Sequence[datetime | None]) -> datetime:
    """When the last of them changed: now, where one had not yet."""
    return max((moment or work.now for moment in moments), default=work.now)
