"""Notification preferences: by which channels a user wants to be notified of what."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Principal
from models.core.base import Id, Input, Shape, example
from models.messages.push_devices import devices_of
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, table_of


class NotificationKind(StrEnum):
    MENTION = "mention"
    COMMENT = "comment"
    ASSIGNMENT = "assignment"
    APPROVAL_REQUEST = "approval_request"
    AUTOMATION_FAILED = "automation_failed"
    AUTOMATION_LOOP = "automation_loop"
    ALERT = "alert"
    DATA_SOURCE_FAILED = "data_source_failed"
    IMPORT_FINISHED = "import_finished"
    LEGACY_IMPORT = "legacy_import"
    SHARE = "share"
    TIMER_DONE = "timer_done"
    SYSTEM = "system"


class NoticeChannel(StrEnum):
    IN_APP = "inApp"
    PUSH = "push"
    MAIL = "mail"


MAILED = frozenset(
    {
        NotificationKind.MENTION,
        NotificationKind.ASSIGNMENT,
        NotificationKind.APPROVAL_REQUEST,
        NotificationKind.ALERT,
        NotificationKind.SHARE,
    }
)
"""Kinds that are mailed by default: a member waits for the user, gives them something, or chose to
be alerted. All others would fill a mailbox."""

Choices = Mapping[str, Mapping[str, bool]]
"""The choices of a user, by kind and channel. What is not there is as it is by default."""


def wants(choices: Choices | None, kind: NotificationKind, channel: NoticeChannel) -> bool:
    """True when a user with these choices is notified of a kind by a channel."""
    chosen = (choices or {}).get(kind.value, {}).get(channel.value)
    if chosen is not None:
        return chosen
    return channel is not NoticeChannel.MAIL or kind in MAILED


class NotificationPreference(SQLModel, table=True):
    """The choices of one user, in every workspace; without a row everything is by default."""

    __tablename__ = "notification_preference"
    __table_args__ = (sa.ForeignKeyConstraint(["user_id"], ["app_user.id"]),)

    user_id: Id = TableField(primary_key=True)
    choices: dict[str, Any] = TableField(sa_type=JSONB)
    updated_at: datetime = TableField(sa_type=Timestamp)


notification_preference = table_of(NotificationPreference)

Kind = Annotated[NotificationKind, Field(strict=False)]


class ChooseChannels(Input):
    """The channels of a kind. Missing channels keep their default."""

    in_app: bool | None = None
    push: bool | None = None
    mail: bool | None = None


class ReplacePreferences(Input):
    """Body of replace notification preferences. Missing keys have their default."""

    model_config = example({"preferences": {"comment": {"push": False}, "share": {"mail": False}}})

    preferences: dict[Kind, ChooseChannels]

    @property
    def choices(self) -> Choices:
        """The choices that were made, without the rest."""
        return {
            kind.value: channels.model_dump(by_alias=True, exclude_none=True)
            for kind, channels in self.preferences.items()
        }


class Channels(Shape):
    """The channels of a kind."""

    in_app: bool
    push: bool
    mail: bool


class Preferences(Shape):
    """The kinds of notifications and their channels.

    Kinds that are off in the app are archived there.
    """

    preferences: dict[NotificationKind, Channels]


_preference = notification_preference.c


class Listener(Protocol):
    """A member, what they have chosen, and their push devices."""

    user_id: Id
    role: str
    choices: Choices | None
    devices: list[Id]


async def get_preferences(work: UnitOfWork, principal: Principal) -> Preferences:
    """By which channels the caller is notified of what."""
    own = _preference.user_id == principal.user_id
    choices = await work.scalar(sa.select(_preference.choices).where(own))
    return Preferences(
        preferences={
            kind: Channels.model_validate(
                {channel.value: wants(choices, kind, channel) for channel in NoticeChannel}
            )
            for kind in NotificationKind
        }
    )


def listeners(roles: sa.Select[Any]) -> sa.Select[Any]:
    """The `Listener` for each user whose `user_id` and `role` these rows hold."""
    users = roles.subquery()
    devices = devices_of(users.c.user_id).label("devices")
    return (
        sa.select(users.c.user_id, users.c.role, _preference.choices, devices)
        .select_from(users)
        .outerjoin(notification_preference, _preference.user_id == users.c.user_id)
    )


async def replace_preferences(
    work: UnitOfWork, principal: Principal, body: ReplacePreferences
) -> Preferences:
    """Make these the caller's choices; they hold from the next notification on."""
    given = {"choices": dict(body.choices), "updated_at": work.now}
    statement = upsert(notification_preference).values(user_id=principal.user_id, **given)
    await work.execute(statement.on_conflict_do_update(index_elements=["user_id"], set_=given))
    return await get_preferences(work, principal)
