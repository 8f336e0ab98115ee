"""The list of runs: its filters, its rows, and the equal call of the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from api.console.words import curl, plain, queried
from api.kernel.request import ApiRequest
from models.automation.automation_runs.queries import list_workspace_runs
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_filters import RunFilter
from models.automation.automation_runs.shapes import AutomationRunShape
from models.automation.automations import queries as automations
from models.core.base import Id
from runtime.timestamps import wire_timestamp

PAGE = 50
_MOST_CHOICES = 100


class Period(StrEnum):
    """A time until now."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


_LENGTHS: Mapping[Period, timedelta] = {
    Period.HOUR: timedelta(hours=1),
    Period.DAY: timedelta(days=1),
    Period.WEEK: timedelta(days=7),
    Period.MONTH: timedelta(days=30),
}
PERIODS = [
    ("", "Any time"),
    ("hour", "Last hour"),
    ("day", "Last 24 hours"),
    ("week", "Last 7 days"),
    ("month", "Last 30 days"),
]
SOURCES = [("", "Any source"), *((one.value, plain(one).capitalize()) for one in RunSource)]
STATUSES = [("", "All"), *((one.value, plain(one).capitalize()) for one in RunStatus)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of the list, as they stand in the URL."""

    status: RunStatus | None = None
    source: RunSource | None = None
    automation_id: Id | None = None
    period: Period | None = None

    def query(self, **others: object) -> dict[str, object]:
        """The parameters of the URL, some of them replaced by `others`."""
        return {
            "status": self.status,
            "source": self.source,
            "automationId": self.automation_id,
            "period": self.period,
            **others,
        }

    def since(self, now: datetime) -> datetime | None:
        return None if self.period is None else now - _LENGTHS[self.period]

    @property
    def narrow(self) -> bool:
        """Some of them is set."""
        return any(value is not None for value in self.query().values())


@dataclass(frozen=True, slots=True)
class Row:
    """A run in a list."""

    run: AutomationRunShape
    label: str
    seconds: float | None

    @property
    def note(self) -> str:
        """The reason why it failed, or what it waits for."""
        if self.run.error:
            return self.run.error
        waiting = self.run.metadata.get("waiting") or []
        return "; ".join(f"{one['nodeId']}: {plain(one['reason'])}" for one in waiting[:3])


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list."""

    rows: Sequence[Row]
    cursor: str | None


async def listing(
    request: ApiRequest, filters: Filters, limit: int, cursor: str | None = None
) -> Listing:
    """The newest runs that fit the filters, with what their automations are called."""
    page = request.page("console runs", limit, cursor, *filters.query().values())
    wanted = RunFilter(
        status=filters.status, source=filters.source, since=filters.since(request.work.now)
    )
    listed = await list_workspace_runs(
        request.work, request.actor, filters.automation_id, page, wanted
    )
    ids = [run.automation_id for run in listed.runs]
    labels = await automations.labels_of(request.work, request.actor, ids)
    now = request.work.now
    rows = [Row(run, labels[run.automation_id], seconds_of(run, now)) for run in listed.runs]
    return Listing(rows, listed.cursor)


def seconds_of(run: AutomationRunShape, now: datetime) -> float | None:
    """The time a run has taken; None before it started."""
    if run.started_at is None:
        return None
    return ((run.completed_at or now) - run.started_at).total_seconds()


async def automation_choices(
    request: ApiRequest, automation_id: Id | None
) -> list[tuple[str, str]]:
    """Automations to filter by, the one that is chosen among them."""
    page = request.page("console automations", _MOST_CHOICES, None)
    listed = await automations.list_automations(request.work, request.actor, page)
    choices = {str(one.id): one.label for one in listed.automations}
    if automation_id is not None and str(automation_id) not in choices:
        labels = await automations.labels_of(request.work, request.actor, [automation_id])
        choices |= {str(key): label for key, label in labels.items()}
    return [("", "Any automation"), *choices.items()]


def equal_call(request: ApiRequest, base: str, filters: Filters) -> str:
    """The call of the API that lists the same."""
    since = filters.since(request.work.now)
    path = queried(
        f"/v1/workspaces/{request.workspace_id}/automation-runs",
        status=filters.status,
        source=filters.source,
        automationId=filters.automation_id,
        since=None if since is None else wire_timestamp(since),
        limit=PAGE,
    )
    return curl(base, "GET", path)
