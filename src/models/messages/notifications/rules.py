"""Acts of members among the kinds of notification, and the length of a title."""

from models.messages.notification_preferences.kinds import NotificationKind

ACTS = frozenset(
    {
        NotificationKind.MENTION,
        NotificationKind.COMMENT,
        NotificationKind.ASSIGNMENT,
        NotificationKind.SHARE,
    }
)
"""Kinds of what somebody has done: they themselves are not notified."""

MAX_TITLE = 200


def about(text: str) -> str:
    """The words of a notification, cut to the length of a title."""
    return text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1]}…"
