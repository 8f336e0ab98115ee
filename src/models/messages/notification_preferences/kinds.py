"""Kinds of notification (decisions C13), which a preference turns on or off by channel."""

from enum import StrEnum


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
