"""Notification preferences on the wire."""

from typing import Annotated

from pydantic import Field

from models.core.base import Input, Shape, example
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notification_preferences.rules import Choices

Kind = Annotated[NotificationKind, Field(strict=False)]


class ChooseChannels(Input):
    """By which channels a kind is told; a channel that is left out is as it is by default."""

    in_app: bool | None = None
    push: bool | None = None
    mail: bool | None = None


class ReplacePreferences(Input):
    """Body of replace notification preferences; what is left out is as it is by default."""

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
    """By which channels a kind is told."""

    in_app: bool
    push: bool
    mail: bool


class Preferences(Shape):
    """Every kind of notification, and by which channels the caller is told of it.

    What is not told in the app is there among the archived ones.
    """

    preferences: dict[NotificationKind, Channels]
