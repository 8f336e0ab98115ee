"""Channels of notifications, and what a user gets who has chosen nothing. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from models.messages.notification_preferences.kinds import NotificationKind


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
"""Kinds that are mailed unless a user says otherwise: somebody waits for the user, gives them
something, or chose to be alerted. The rest would fill a mailbox."""

Choices = Mapping[str, Mapping[str, bool]]
"""The choices of a user, by kind and channel. What is not there is as it is by default."""


def wants(choices: Choices | None, kind: NotificationKind, channel: NoticeChannel) -> bool:
    """True when a user with these choices is notified of a kind by a channel."""
    chosen = (choices or {}).get(kind.value, {}).get(channel.value)
    if chosen is not None:
        return chosen
    return channel is not NoticeChannel.MAIL or kind in MAILED
