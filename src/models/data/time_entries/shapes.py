"""Time entries on the wire (interface.md#time-entry, interface.md#time-entries)."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from models.core.base import EXAMPLE_ID, Id, Input, InputId, Moment, Nullable, Shape, example
from models.core.values import InputMoment
from models.data.time_entries import rules

MAX_DURATION_MS = rules.milliseconds(rules.LONGEST)

Duration = Annotated[int, Field(ge=1, le=MAX_DURATION_MS)]
"""Milliseconds."""
Summary = Annotated[str, Field(max_length=10_000)]
MutationId = Annotated[str, Field(min_length=1, max_length=255)]


class StartTimeEntry(Input):
    """Body of start time entry.

    With `startedAt` and `endedAt` the entry is completed; without, it runs from now, or from
    `startedAt` on. `targetId` is optional for the workspace. A countdown lasts `targetDurationMs`,
    as does a pomodoro, by default 25 minutes. `onActive` decides on the caller's running entry: it
    is completed, or the call is refused.
    """

    model_config = example(
        {"targetKind": "database_record", "targetId": EXAMPLE_ID, "summary": "Draft the offer"}
    )

    target_kind: Annotated[rules.TargetKind, Field(strict=False)]
    target_id: InputId | None = None
    field_id: InputId | None = None
    mode: Annotated[rules.EntryMode, Field(strict=False)] | None = None
    source: Annotated[rules.EntrySource, Field(strict=False)] | None = None
    started_at: InputMoment | None = None
    ended_at: InputMoment | None = None
    target_duration_ms: Duration | None = None
    summary: Summary | None = None
    sound_id: Annotated[rules.EntrySound, Field(strict=False)] | None = None
    client_mutation_id: MutationId | None = None
    on_active: Annotated[rules.OnActive, Field(strict=False)] = rules.OnActive.REPLACE


class UpdateTimeEntry(Input):
    """Body of update time entry; `action` moves its clock, null clears a summary or a goal.

    `endedAt` is for the action `complete`, or corrects a completed entry. `onActive` applies to
    `resume` as to a start. A repeated `clientMutationId` changes nothing.
    """

    action: Annotated[rules.EntryAction, Field(strict=False)] | None = None
    summary: Summary | None = None
    started_at: InputMoment | None = None
    ended_at: InputMoment | None = None
    target_duration_ms: Duration | None = None
    sound_id: Annotated[rules.EntrySound, Field(strict=False)] | None = None
    target_id: InputId | None = None
    client_mutation_id: MutationId | None = None
    expected_updated_at: InputMoment | None = None
    on_active: Annotated[rules.OnActive, Field(strict=False)] | None = None


class TimeEntryDetail(Shape):
    """Time that a user spends on something; durations are in milliseconds.

    `targetTitleSnapshot` and `fieldLabelSnapshot` are as they were when the entry was created.
    """

    id: Id
    workspace_id: Id
    user_id: Id
    user_display_name: str | None
    target_kind: rules.TargetKind
    target_id: Id
    target_title_snapshot: str | None
    database_id: Id | None
    field_id: Id | None
    field_label_snapshot: str | None
    source: rules.EntrySource
    mode: rules.EntryMode
    status: rules.EntryStatus
    started_at: Moment
    ended_at: Moment | None
    paused_at: Moment | None
    due_at: Moment | None
    accumulated_paused_ms: int
    duration_ms: int | None
    target_duration_ms: int | None
    summary: str | None
    sound_id: rules.EntrySound
    completed_by: rules.CompletedBy | None
    client_mutation_id: str | None
    created_by_user_id: Id
    updated_by_user_id: Id
    created_at: Moment
    updated_at: Moment


class TimeEntryState(Shape):
    """An entry, and how much time it has taken at `serverTime`, in milliseconds."""

    entry: TimeEntryDetail
    server_time: Moment
    authoritative_elapsed_ms: int


class CurrentTimeEntry(Shape):
    """The caller's running entry, else the one they paused last; absent without either."""

    entry: TimeEntryDetail | None
    server_time: Moment
    authoritative_elapsed_ms: int | None


class TimeEntryList(Shape):
    entries: list[TimeEntryDetail]
    cursor: Nullable[str]
    server_time: Moment


class SummaryGroup(StrEnum):
    """The key that a summary adds up by."""

    DAY = "day"
    USER = "user"
    TARGET = "target"
    FIELD = "field"


class SummaryRow(Shape):
    """The time of one group: a day, a user, a target or a field, named by the parts that are there.

    `durationMs` is that of completed entries, `openMs` what running and paused ones have taken so
    far. An entry that lasts past midnight counts on each day with its share.
    """

    day: str | None
    user_id: Id | None
    user_display_name: str | None
    target_kind: rules.TargetKind | None
    target_id: Id | None
    target_title: str | None
    field_id: Id | None
    field_label: str | None
    duration_ms: int
    open_ms: int
    entry_count: int


class TimeEntrySummary(Shape):
    """Time by group, from the first day to the last in `timezone`.

    `totalDurationMs` and `totalOpenMs` are of all groups, on this page and others.
    """

    group_by: SummaryGroup
    timezone: str
    first_day: str
    last_day: str
    groups: list[SummaryRow]
    total_duration_ms: int
    total_open_ms: int
    cursor: Nullable[str]
    server_time: Moment
