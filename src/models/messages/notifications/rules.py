"""Kinds of notification (decisions C13)."""

from enum import StrEnum


class NotificationKind(StrEnum):
    MENTION = "mention"
    COMMENT = "comment"
    ASSIGNMENT = "assignment"
    APPROVAL_REQUEST = "approval_request"
    AUTOMATION_FAILED = "automation_failed"
    AUTOMATION_LOOP = "automation_loop"
    DATA_SOURCE_FAILED = "data_source_failed"
    IMPORT_FINISHED = "import_finished"
    LEGACY_IMPORT = "legacy_import"
    SHARE = "share"
    TIMER_DONE = "timer_done"
    SYSTEM = "system"


ACTS = frozenset(
    {
        NotificationKind.MENTION,
        NotificationKind.COMMENT,
        NotificationKind.ASSIGNMENT,
        NotificationKind.SHARE,
    }
)
"""What somebody has done: they themselves are not notified."""

MAX_TITLE = 200


def about(text: str) -> str:
    """What a notification says, cut to the length of a title."""
    return text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1]}…"
