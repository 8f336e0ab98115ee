"""Notifications on the wire (interface, Behaviour notes 7 and 8; decisions C13)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from models.core.base import Id, Input, JsonObject, Moment, Nullable, Shape
from models.messages.notification_preferences.kinds import NotificationKind

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
            raise ValueError("Give ids of notifications or all.")
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
            raise ValueError("Give ids of notifications or allRead.")
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


class NotificationList(Shape):
    notifications: list[NotificationBody]
    cursor: Nullable[str]
