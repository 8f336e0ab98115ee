"""Sources of events, outcomes for automations, and what is kept of a payload. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from models.core.base import Id, JsonObject
from models.messages.events.rules import EventKind
from runtime.derived_ids import derived_id
from runtime.redaction import without_named_secrets


class EventSource(StrEnum):
    """The kind of thing that an event is from."""

    WEBHOOK = "webhook"
    RECORD = "record"
    RECORD_DATE = "record_date"
    FORM = "form"
    BUTTON = "button"
    SCHEDULE = "schedule"
    CALL = "call"
    FAILURE = "failure"
    DATA_SOURCE = "data_source"
    TIME_ENTRY = "time_entry"


DISPATCHED: Mapping[EventKind, EventSource] = {
    EventKind.RECORD_CHANGED: EventSource.RECORD,
    EventKind.RECORD_DATE_REACHED: EventSource.RECORD_DATE,
    EventKind.FORM_SUBMITTED: EventSource.FORM,
    EventKind.BUTTON_PRESSED: EventSource.BUTTON,
    EventKind.DATA_SOURCE_FINISHED: EventSource.DATA_SOURCE,
    EventKind.AUTOMATION_FAILED: EventSource.FAILURE,
    EventKind.TIME_ENTRY_COMPLETED: EventSource.TIME_ENTRY,
}
"""The sources of the events that the dispatcher judges."""


class EventOutcome(StrEnum):
    """The outcome of an event for one automation, when it was judged."""

    RUN = "run"
    QUEUED = "queued"
    """There is a run, which waits for a slot of its concurrency."""
    PAUSED = "paused"
    """There is a run, which waits for the end of a pause."""
    DEBOUNCED = "debounced"
    FILTERED = "filtered"
    FILTER_FAILED = "filter_failed"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"
    """All slots of the automation's concurrency were taken."""
    DISABLED = "disabled"
    ARCHIVED = "archived"
    NO_PUBLISHED_VERSION = "no_published_version"
    WRONG_METHOD = "wrong_method"
    UNVERIFIED = "unverified"
    TOO_LARGE = "too_large"
    INVALID = "invalid"
    NOT_ALLOWED = "not_allowed"
    LOOP = "loop"
    """The chain of runs that led to it is too long."""
    PASSED_OVER = "passed_over"
    """The schedule fired too late, or while an earlier run was open."""
    FAILED = "failed"
    """The platform gave up after several attempts."""


WITH_RUN = frozenset({EventOutcome.RUN, EventOutcome.QUEUED, EventOutcome.PAUSED})
"""The outcomes of an event that has its own run."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """An outcome with what it is due to.

    `detail` is the term of a filter with the value it met, the slot that was taken, or the like.
    """

    outcome: EventOutcome
    run_id: Id | None = None
    detail: JsonObject | None = None

    @classmethod
    def of_dormant(cls, reason: str | None) -> "Judgement | None":
        """The outcome for an automation that starts no runs; None for one that does."""
        return None if reason is None else cls(EventOutcome(reason))


def loop(chain: Sequence[Id]) -> Judgement:
    """The outcome of an event at the end of a chain of runs that is too long."""
    return Judgement(EventOutcome.LOOP, detail={"chain": [str(run_id) for run_id in chain]})


@dataclass(frozen=True, slots=True)
class Received:
    """An event as it is kept; `payload` is what a run of it starts with."""

    id: Id
    workspace_id: Id
    source: EventSource
    subject_id: Id
    payload: JsonObject | None


class KeptEvent(Protocol):
    """An event as the inbox has it; `payload` is null when it was larger than is kept."""

    id: Id
    workspace_id: Id
    source: str
    subject_id: Id
    payload: JsonObject | None
    payload_bytes: int
    received_at: datetime


def outcome_id(event_id: Id, automation_id: Id) -> Id:
    """The id of an automation's outcome: judging an event once more replaces the first."""
    return derived_id(event_id, automation_id, "outcome")


MAX_PAYLOAD = 64 * 1024
"""Bytes of a payload as it is stored; of a larger one its size is kept."""
MAX_DETAIL = 2_000
"""Characters of a text in a detail."""


def masked_payload(payload: JsonObject) -> JsonObject:
    """A payload without the values whose keys name secrets."""
    kept = without_named_secrets(payload)
    assert isinstance(kept, dict), "an object stays one"
    return kept


def shortened(value: object) -> object:
    """A value of a detail, its texts cut, so that a detail stays small."""
    if isinstance(value, str):
        return value if len(value) <= MAX_DETAIL else f"{value[:MAX_DETAIL]}…"
    if not isinstance(value, dict | list):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= MAX_DETAIL else f"{text[:MAX_DETAIL]}…"


REASONS: dict[EventOutcome, str] = {
    EventOutcome.RUN: "Started a run.",
    EventOutcome.QUEUED: "Queued a run until a concurrency slot is free.",
    EventOutcome.PAUSED: "Queued a run until the pause ends.",
    EventOutcome.DEBOUNCED: "Merged into the debounced change of the record.",
    EventOutcome.FILTERED: "The trigger's filter did not match.",
    EventOutcome.FILTER_FAILED: "The trigger's filter could not be evaluated.",
    EventOutcome.DUPLICATE: "A call with the same deduplication key came before.",
    EventOutcome.SKIPPED: "All concurrency slots were taken.",
    EventOutcome.DISABLED: "The automation was disabled.",
    EventOutcome.ARCHIVED: "The automation was archived.",
    EventOutcome.NO_PUBLISHED_VERSION: "No published version has this trigger.",
    EventOutcome.WRONG_METHOD: "The webhook does not accept the method.",
    EventOutcome.UNVERIFIED: "The signature or the secret of the call was wrong.",
    EventOutcome.TOO_LARGE: "The body was too large.",
    EventOutcome.INVALID: "The payload was invalid.",
    EventOutcome.NOT_ALLOWED: "The automation cannot be run in this way.",
    EventOutcome.LOOP: "The chain of runs was too long.",
    EventOutcome.PASSED_OVER: "The schedule fired too late, or an earlier run was still open.",
    EventOutcome.FAILED: "The platform gave up after several attempts.",
}
"""A sentence for people on each outcome."""
