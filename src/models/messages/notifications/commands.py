"""Notifying members, and marking notifications read or archived.

A notification is written in the transaction of what it is about. Reading and archiving are logged
once in the log of each workspace.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal
from models.core.base import Id, JsonObject
from models.messages.notifications.rules import NotificationKind
from models.messages.notifications.shapes import (
    ArchiveNotifications,
    MarkRead,
    NotificationsArchived,
    NotificationsRead,
)
from models.messages.notifications.tables import notification
from models.messages.workspace_events.commands import append_event
from models.messages.workspace_events.rules import EventType
from models.people.members.queries import members_among
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.ids import new_id

MOST_AT_ONCE = 10_000
"""Notifications that `all` and `allRead` reach in one call, the newest first."""

_notification = notification.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message to several users; a user who has one with this `key` gets no second."""

    kind: NotificationKind
    title: str
    body: str = ""
    item_id: Id | None = None
    record_id: Id | None = None
    run_id: Id | None = None
    actor_user_id: Id | None = None
    data: JsonObject = field(default_factory=dict)
    key: str | None = None


async def notify(
    work: UnitOfWork, workspace_id: Id, user_ids: Collection[Id], notice: Notice
) -> list[Id]:
    """Notify those of these users who are members; gives their ids, in order."""
    members = await work.rows(members_among(workspace_id, user_ids))
    notified = sorted(row.user_id for row in members)
    rows = [
        {
            "id": new_id()
            if notice.key is None
            else derived_id("notification", notice.key, workspace_id, user_id),
            "workspace_id": workspace_id,
            "user_id": user_id,
            "kind": notice.kind.value,
            "title": notice.title,
            "body": notice.body,
            "item_id": notice.item_id,
            "record_id": notice.record_id,
            "run_id": notice.run_id,
            "actor_user_id": notice.actor_user_id,
            "data": notice.data,
            "created_at": work.now,
        }
        for user_id in notified
    ]
    if rows:
        # Row by row: a statement for all has room for some thousand members.
        await work.execute(upsert(notification).on_conflict_do_nothing(index_elements=["id"]), rows)
    return notified


class _HeldRow(Protocol):
    id: Id
    workspace_id: Id
    read_at: datetime | None
    archived_at: datetime | None


async def mark_read(
    work: UnitOfWork, principal: Principal, places: Collection[Id], body: MarkRead
) -> NotificationsRead:
    """Mark the principal's notifications in these workspaces read.

    Of ids that name nothing readable a single one raises `NotFoundError`; others are left out.
    """
    found = await _held(work, principal, places, body.named, _notification.read_at.is_(None))
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
    waiting = _notification.read_at.is_not(None) & _notification.archived_at.is_(None)
    found = await _held(work, principal, places, body.named, waiting)
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
) -> Sequence[_HeldRow]:
    """The notifications that are meant, locked, in the order of their ids."""
    own = (_notification.user_id == principal.user_id, _notification.workspace_id.in_(places))
    columns = select(
        _notification.id,
        _notification.workspace_id,
        _notification.read_at,
        _notification.archived_at,
    ).where(*own)
    if ids:
        meant = columns.where(_notification.id.in_(sorted(ids)))
    else:
        newest = (
            select(_notification.id).where(*own, waiting).order_by(_notification.created_at.desc())
        )
        meant = columns.where(_notification.id.in_(newest.limit(MOST_AT_ONCE)), waiting)
    found = await work.rows(meant.order_by(_notification.id).with_for_update(), of=_HeldRow)
    if len(ids) == 1 and not found:
        raise NotFoundError("notification")
    return found


async def _change(
    work: UnitOfWork,
    principal: Principal,
    rows: Sequence[_HeldRow],
    kind: EventType,
    **values: datetime,
) -> None:
    """Write the change of locked rows, and one event of it in the log of each workspace."""
    if not rows:
        return
    ids = [row.id for row in rows]
    await work.execute(update(notification).where(_notification.id.in_(ids)).values(values))
    by_place: dict[Id, list[str]] = defaultdict(list)
    for row in rows:
        by_place[row.workspace_id].append(str(row.id))
    for place in sorted(by_place):
        data = {"notificationIds": by_place[place]}
        await append_event(work, principal, place, kind, data, audience_user_id=principal.user_id)


def _since(work: UnitOfWork, moments: Sequence[datetime | None]) -> datetime:
    """When the last of them changed: now, where one had not yet."""
    return max((moment or work.now for moment in moments), default=work.now)
