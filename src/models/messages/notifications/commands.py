"""Notifying members who see the subject, and marking notifications read or archived.

A notification is written in the transaction of what it is about. Reading and archiving are logged
once in the log of each workspace.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal, Role
from models.core.base import Id, JsonObject
from models.messages import notification_preferences
from models.messages.deliveries.commands import NewDelivery, accept_deliveries
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.notifications import queries
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from models.people.members import roles_among
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.ids import new_id, parse_id

ACTS = frozenset(
    {
        notification_preferences.NotificationKind.MENTION,
        notification_preferences.NotificationKind.COMMENT,
        notification_preferences.NotificationKind.ASSIGNMENT,
        notification_preferences.NotificationKind.SHARE,
    }
)
"""Kinds of what someone has done: they themselves are not notified."""

MAX_TITLE = 200


def about(text: str) -> str:
    """The words of a notification, cut to the length of a title."""
    return text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1]}…"


FindViewers = Callable[[UnitOfWork, Id, Id, Mapping[Id, Role]], Awaitable[Collection[Id]]]
"""Takes a workspace, an item and members with their roles; gives the members who see the item."""

_FIND: list[FindViewers] = []


def find_viewers_with(find: FindViewers) -> None:
    """Ask `find` who sees an item; registering it again changes nothing.

    The items, which know the viewers, register; `models.registrations` lists them.
    """
    if find not in _FIND:
        _FIND.append(find)


async def viewers_of(
    work: UnitOfWork, workspace_id: Id, item_id: Id | None, roles: Mapping[Id, Role]
) -> Collection[Id]:
    """The members among these who see what a notification is about; without an item all do."""
    if item_id is None or not roles:
        return roles.keys()
    (find,) = _FIND
    return await find(work, workspace_id, item_id, roles)


MOST_AT_ONCE = 10_000
"""Notifications that `all` and `allRead` reach in one call, the newest first."""

_notification = queries.notification.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message to several users; a user who has one with this `key` gets no second."""

    kind: notification_preferences.NotificationKind
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
    """Notify the members among these users; gives their ids, in order.

    No one is notified of what they did themselves, nor of an item they do not see. What a user does
    not want in the app is archived at once; by push and mail it goes where they want it.
    """
    return sorted(await notify_each(work, workspace_id, [(user_ids, notice)]))


async def notify_each(
    work: UnitOfWork, workspace_id: Id, notices: Iterable[tuple[Collection[Id], Notice]]
) -> set[Id]:
    """Notify several groups of users, each of something else, as `notify` does; whom it reached."""
    groups = [(_others(user_ids, notice), notice) for user_ids, notice in notices]
    everybody = {user_id for user_ids, _ in groups for user_id in user_ids}
    if not everybody:
        return set()
    found = await work.rows(
        notification_preferences.listeners(roles_among(workspace_id, everybody)),
        of=notification_preferences.Listener,
    )
    members = {user.user_id: user for user in sorted(found, key=lambda user: user.user_id)}
    addressed: list[tuple[notification_preferences.Listener, dict[str, Any]]] = []
    for user_ids, notice in groups:
        roles = {id_: Role(user.role) for id_, user in members.items() if id_ in user_ids}
        seeing = await viewers_of(work, workspace_id, notice.item_id, roles)
        users = [user for id_, user in members.items() if id_ in seeing]
        addressed += [(user, _row(work, workspace_id, user, notice)) for user in users]
    await _store(work, addressed)
    return {user.user_id for user, _ in addressed}


def _others(user_ids: Collection[Id], notice: Notice) -> set[Id]:
    """The users who did not do it themselves."""
    did = {notice.actor_user_id} if notice.kind in ACTS else set()
    return set(user_ids) - did


async def _store(
    work: UnitOfWork, addressed: Sequence[tuple[notification_preferences.Listener, dict[str, Any]]]
) -> None:
    """Write the notifications that are not there yet, and have them delivered."""
    ids = [row["id"] for _, row in addressed]
    known = await work.rows(
        sa.select(_notification.id).where(_notification.id == sa.any_(_uuids(ids)))
    )
    there = {row.id for row in known}
    fresh = {row["id"]: (user, row) for user, row in addressed if row["id"] not in there}
    if not fresh:
        return
    rows = [row for _, row in fresh.values()]
    # Row by row: a statement for all has room for some thousand members.
    await work.execute(
        upsert(queries.notification).on_conflict_do_nothing(index_elements=["id"]), rows
    )
    wanted = [one for user, row in fresh.values() for one in _deliveries(row, user)]
    await accept_deliveries(work, wanted)


def _uuids(ids: Sequence[Id]) -> sa.ColumnElement[Any]:
    return sa.literal(list(ids), sa.ARRAY(sa.Uuid))


def _row(
    work: UnitOfWork, workspace_id: Id, user: notification_preferences.Listener, notice: Notice
) -> dict[str, Any]:
    in_app = notification_preferences.wants(
        user.choices, notice.kind, notification_preferences.NoticeChannel.IN_APP
    )
    return {
        "id": new_id()
        if notice.key is None
        else derived_id("notification", notice.key, workspace_id, user.user_id),
        "workspace_id": workspace_id,
        "user_id": user.user_id,
        "kind": notice.kind.value,
        "title": notice.title,
        "body": notice.body,
        "item_id": notice.item_id,
        "record_id": notice.record_id,
        "run_id": notice.run_id,
        "actor_user_id": notice.actor_user_id,
        "data": notice.data,
        "archived_at": None if in_app else work.now,
        "created_at": work.now,
    }


def _deliveries(
    row: Mapping[str, Any], user: notification_preferences.Listener
) -> Iterator[NewDelivery]:
    """A notification by push to each device of its user, and by mail."""
    kind = notification_preferences.NotificationKind(row["kind"])
    targets = [(DeliveryChannel.PUSH, device_id) for device_id in user.devices]
    if not notification_preferences.wants(
        user.choices, kind, notification_preferences.NoticeChannel.PUSH
    ):
        targets = []
    if notification_preferences.wants(
        user.choices, kind, notification_preferences.NoticeChannel.MAIL
    ):
        targets.append((DeliveryChannel.MAIL, user.user_id))
    for channel, target_id in targets:
        yield NewDelivery(
            workspace_id=row["workspace_id"],
            channel=channel,
            subject_id=row["id"],
            target_id=target_id,
        )


async def mark_read(
    work: UnitOfWork, principal: Principal, places: Collection[Id], body: queries.MarkRead
) -> queries.NotificationsRead:
    """Mark the principal's notifications in these workspaces read.

    Of ids that name nothing readable a single one raises `NotFoundError`; others are left out.
    """
    found = await _held(work, principal, places, body.named, _notification.read_at.is_(None))
    unread = [row for row in found if row.read_at is None]
    await _change(work, principal, unread, EventType.NOTIFICATION_READ, read_at=work.now)
    return queries.NotificationsRead(
        notification_ids=[row.id for row in found],
        read_at=_since(work, [row.read_at for row in found]),
    )


async def archive(
    work: UnitOfWork,
    principal: Principal,
    places: Collection[Id],
    body: queries.ArchiveNotifications,
) -> queries.NotificationsArchived:
    """Archive what is read of the principal's notifications; what is unread is left as it is.

    Of ids that name nothing readable a single one raises `NotFoundError`; others are left out.
    """
    waiting = _notification.read_at.is_not(None) & _notification.archived_at.is_(None)
    found = await _held(work, principal, places, body.named, waiting)
    read = [row for row in found if row.read_at is not None]
    fresh = [row for row in read if row.archived_at is None]
    await _change(work, principal, fresh, EventType.NOTIFICATION_ARCHIVED, archived_at=work.now)
    return queries.NotificationsArchived(
        notification_ids=[row.id for row in read],
        archived_at=_since(work, [row.archived_at for row in read]),
    )


async def _held(
    work: UnitOfWork,
    principal: Principal,
    places: Collection[Id],
    ids: Collection[str],
    waiting: sa.ColumnElement[bool],
) -> Sequence[queries.Notification]:
    """The notifications that are meant, locked, in the order of their ids."""
    own = (_notification.user_id == principal.user_id, _notification.workspace_id.in_(places))
    columns = sa.select(
        _notification.id,
        _notification.workspace_id,
        _notification.read_at,
        _notification.archived_at,
    ).where(*own)
    if ids:
        known = {id_ for text in ids if (id_ := parse_id(text))}
        statement = columns.where(_notification.id.in_(sorted(known)))
    else:
        newest = (
            sa.select(_notification.id)
            .where(*own, waiting)
            .order_by(_notification.created_at.desc())
        )
        statement = columns.where(_notification.id.in_(newest.limit(MOST_AT_ONCE)), waiting)
    found = await work.rows(
        statement.order_by(_notification.id).with_for_update(), of=queries.Notification
    )
    if len(ids) == 1 and not found:
        raise NotFoundError("notification")
    return found


async def _change(
    work: UnitOfWork,
    principal: Principal,
    rows: Sequence[queries.Notification],
    kind: EventType,
    **values: datetime,
) -> None:
    """Write the change of locked rows, and one event of it in the log of each workspace."""
    if not rows:
        return
    ids = [row.id for row in rows]
    await work.execute(
        sa.update(queries.notification).where(_notification.id.in_(ids)).values(values)
    )
    by_place: dict[Id, list[str]] = defaultdict(list)
    for row in rows:
        by_place[row.workspace_id].append(str(row.id))
    for place in sorted(by_place):
        data = {"notificationIds": by_place[place]}
        await append_event(work, principal, place, kind, data, audience_user_id=principal.user_id)


def _since(work: UnitOfWork, moments: Sequence[datetime | None]) -> datetime:
    """The moment the last of them changed: now, where one had not yet."""
    return max((moment or work.now for moment in moments), default=work.now)
