"""Kinds of events, and the kinds of subscriptions that one of them can answer."""

from enum import StrEnum


class EventKind(StrEnum):
    """The kind of an event. Every kind but the first is also the kind of its subscriptions."""

    RECORD_CHANGED = "record_changed"
    """Of a record in the database that is the subject; `RECORD_SUBSCRIPTIONS` listen to it."""
    RECORD_DATE_REACHED = "record_date_reached"
    """The subject is the automation that waits for the date."""
    FORM_SUBMITTED = "form_submitted"
    BUTTON_PRESSED = "button_pressed"
    DATA_SOURCE_FINISHED = "data_source_finished"
    AUTOMATION_FAILED = "automation_failed"
    TIME_ENTRY_COMPLETED = "time_entry_completed"


RECORD_SUBSCRIPTIONS = (
    "record_created",
    "record_updated",
    "record_deleted",
    "record_matches",
    "record_date_reached",
)
"""Kinds of subscriptions to which an event of a changed record is dispatched."""

ANSWERED_BY = "answeredBy"
"""Key in an event's payload: ids of the automations that have answered it already."""
