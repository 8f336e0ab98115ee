"""Statistics of runs on the wire."""

from typing import Annotated

from pydantic import Field

from models.automation.automation_runs.rules import RunStatus
from models.automation.run_statistics.rules import Grain
from models.core.base import Id, Moment, Shape


class Percentiles(Shape):
    """Durations in milliseconds, within 5 %; absent while nothing was counted."""

    p50: Annotated[int, Field(ge=0)]
    p95: Annotated[int, Field(ge=0)]
    p99: Annotated[int, Field(ge=0)]


class EndedRuns(Shape):
    """Runs that ended, by outcome; `duration` is from start to end, `queueing` until the start."""

    runs: int
    outcomes: dict[RunStatus, int]
    duration: Percentiles | None
    queueing: Percentiles | None


class Period(EndedRuns):
    """The runs that ended in the hour or the day that begins at `start`, in UTC."""

    start: Moment


class FailingNode(Shape):
    """A node in which runs failed, with the error code; without `nodeId` the run itself failed."""

    automation_id: Id
    node_id: str | None
    error_code: str | None
    runs: int


class BusyKey(Shape):
    """A concurrency key with open runs now: `admitted` have a slot, `queued` wait for one."""

    automation_id: Id
    key: str
    admitted: int
    queued: int


class RunStatistics(Shape):
    """Runs that ended from `since` until `until`; tests are not counted.

    `failingNodes` and `busiestKeys` are at most 20 each, the most first; the keys are as of now.
    """

    by: Grain
    since: Moment
    until: Moment
    total: EndedRuns
    periods: list[Period]
    failing_nodes: list[FailingNode]
    busiest_keys: list[BusyKey]
