"""Types of events in the log (decisions C13)."""

from enum import StrEnum


class EventType(StrEnum):
    NOTIFICATION_READ = "notification.read"
    NOTIFICATION_ARCHIVED = "notification.archived"
    DATA_SOURCE_RUN = "data_source.run"
