"""Reading notification preferences, and who is notified by what."""

from typing import Any, Protocol

from sqlalchemy import Select, select

from models.core.access.rules import Principal
from models.core.base import Id
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notification_preferences.rules import Choices, NoticeChannel, wants
from models.messages.notification_preferences.shapes import Channels, Preferences
from models.messages.notification_preferences.tables import notification_preference
from models.messages.push_devices.queries import devices_of
from runtime.database import UnitOfWork

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
    choices = await work.scalar(select(_preference.choices).where(own))
    return Preferences(
        preferences={
            kind: Channels.model_validate(
                {channel.value: wants(choices, kind, channel) for channel in NoticeChannel}
            )
            for kind in NotificationKind
        }
    )


def listeners(roles: Select[Any]) -> Select[Any]:
    """The `Listener` for each user whose `user_id` and `role` these rows hold."""
    users = roles.subquery()
    devices = devices_of(users.c.user_id).label("devices")
    return (
        select(users.c.user_id, users.c.role, _preference.choices, devices)
        .select_from(users)
        .outerjoin(notification_preference, _preference.user_id == users.c.user_id)
    )
