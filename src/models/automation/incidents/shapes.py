"""Incidents on the wire."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from models.automation.incidents.rules import CloseReason
from models.automation.run_operations.rules import MAX_RATE, MIN_RATE
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Moment, Nullable, Shape, example

MAX_NOTE = 2_000


class IncidentState(StrEnum):
    """The state by which incidents are listed; a muted one is open, and nobody is told of it."""

    OPEN = "open"
    MUTED = "muted"
    CLOSED = "closed"


class IncidentSummary(Shape):
    """Failed runs that failed alike: of one automation, at one node, with one code and message.

    In `message` placeholders such as `<number>` stand for what differs from run to run. `runs`
    counts them since it was opened last, `runsInAll` since ever.
    """

    id: Id
    automation_id: Id
    automation_label: str
    state: IncidentState
    node_id: str | None = None
    error_code: str | None = None
    message: str
    runs: int
    runs_in_all: int
    openings: int
    first_failed_at: Moment
    last_failed_at: Moment
    opened_at: Moment
    closed_at: Moment | None = None
    close_reason: CloseReason | None = None
    closed_by_user_id: Id | None = None
    assignee_user_id: Id | None = None
    muted: bool
    note: str


class IncidentList(Shape):
    """A page of incidents, the one that was opened last first."""

    incidents: list[IncidentSummary]
    cursor: Nullable[str]


class IncidentVersionCount(Shape):
    """A version of the automation, and the runs of the incident that ran on it."""

    automation_version_id: Id
    version: int
    runs: int


class SuspectedVersion(Shape):
    """The version that was published last before the first failure of this opening."""

    automation_version_id: Id
    version: int
    published_at: Moment
    author_user_id: Id | None = None


class IncidentDetail(IncidentSummary):
    """One incident; `unresolved` runs were not retried with success.

    They are counted among the oldest 10,000 runs of this opening.
    """

    unresolved: int
    versions: list[IncidentVersionCount]
    suspected_version: SuspectedVersion | None = None


class IncidentRunShape(Shape):
    """A failed run of an incident; what became of it, while it is kept, is read as that run."""

    run_id: Id
    failed_at: Moment


class IncidentRunList(Shape):
    """A page of the runs of an incident, the one that failed last first."""

    runs: list[IncidentRunShape]
    cursor: Nullable[str]


class IncidentRecordShape(Shape):
    """A record that failed runs of an incident were about, or wrote before; `runs` counts them."""

    record_id: Id
    database_id: Id
    database_label: str
    title: str
    runs: int
    last_failed_at: Moment
    last_run_id: Id


class IncidentRecordList(Shape):
    """A page of the records of an incident that the caller sees, the last one concerned first."""

    records: list[IncidentRecordShape]
    cursor: Nullable[str]


class UpdateIncident(Input):
    """Body of update incident; a key that is left out stays as it is, null unassigns."""

    model_config = example({"assigneeUserId": EXAMPLE_ID, "muted": True, "note": "The bank knows."})

    assignee_user_id: InputId | None = None
    muted: bool | None = None
    note: Annotated[str, Field(max_length=MAX_NOTE)] | None = None


class RetryIncident(Input):
    """Body of retry incident: the version and the place at which its runs are retried."""

    model_config = example({"version": "published", "from": "failed"})

    version: Literal["original", "published"] = "published"
    from_: Annotated[Literal["failed", "start"], Field(alias="from")] = "failed"
    rate: Annotated[float, Field(ge=MIN_RATE, le=MAX_RATE)] | None = None
