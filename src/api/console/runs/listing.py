"""The list of runs: its filters, its rows and what they wait for; the statistics of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator
from starlette.responses import Response

from api.console.controls import chart_of
from api.console.forms import paged
from api.console.rendering import Shell, console_page
from api.console.routing import page_router
from api.console.words import plain
from api.kernel.request import ApiRequest
from api.kernel.routing import Access, QueryId
from api.routers.automation import automation_runs as runs_api
from api.routers.automation import many_runs as api
from models.automation.automation_runs.filters import WorkspaceRunQuery
from models.automation.automation_runs.queries import count_open, list_workspace_runs
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.shapes import AutomationRunShape
from models.automation.automations import queries as automations
from models.automation.run_statistics import Grain, get_statistics, span
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.pauses.rules import PauseCause
from models.core.pauses.store import WaitCause, WaitKind
from models.core.values import InputMoment
from runtime.clock import utc_now, wire_timestamp

PAGE = 50
_MOST_CHOICES = 100
_MOST_COUNTED = 1_000

PERIODS = [
    ("", "Any time"),
    ("hour", "Last hour"),
    ("day", "Last 24 hours"),
    ("week", "Last 7 days"),
    ("month", "Last 30 days"),
]
SOURCES = [("", "Any source"), *((one.value, plain(one).capitalize()) for one in RunSource)]
STATUSES = [("", "All"), *((one.value, plain(one).capitalize()) for one in RunStatus)]


def _in_utc(value: object) -> object:
    """A time as a field of a form gives it, which has no offset, is in UTC."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return value
    return value if time.tzinfo is not None else wire_timestamp(time.replace(tzinfo=UTC))


Time = Annotated[InputMoment, BeforeValidator(_in_utc)]


class Filters(WorkspaceRunQuery):
    """The filters of the list, as they stand in the URL."""

    since: Time | None = None
    until: Time | None = None
    started_since: Time | None = None
    started_until: Time | None = None
    ended_since: Time | None = None
    ended_until: Time | None = None

    def query(self, **others: object) -> dict[str, object]:
        """The parameters of the URL, some of them replaced by `others`."""
        return {**self.wire, **others}

    def local(self, name: str) -> str:
        """A time as a field of a form takes it, in UTC."""
        return str(self.wire.get(name, ""))[:16]

    @property
    def narrow(self) -> bool:
        """Some of them is set."""
        return bool(self.wire)

    @property
    def has_more(self) -> bool:
        """One of those is set that stand behind the others."""
        return bool(self.wire.keys() - _IN_LINE)

    @property
    def is_searched(self) -> bool:
        """The list looks through many runs, and is not refreshed by itself."""
        return self.filter(utc_now()).is_searched


_IN_LINE = {"status", "source", "automationId", "period", "text"}


@dataclass(frozen=True, slots=True)
class Row:
    """A run in a list."""

    run: AutomationRunShape
    label: str
    seconds: float | None

    @property
    def note(self) -> str:
        """The reason why it failed, or else what it waits for, or its attributes."""
        if self.run.error:
            return self.run.error
        if (held_up := self.run.metadata.get("waitingFor")) is not None:
            return wait_words(held_up)
        waiting = self.run.metadata.get("waiting") or []
        reasons = "; ".join(f"{one['nodeId']}: {plain(one['reason'])}" for one in waiting[:3])
        attributes = sorted((self.run.attributes or {}).items())
        return reasons or " ".join(f"{key}:{value}" for key, value in attributes)


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list."""

    rows: Sequence[Row]
    cursor: str | None
    searched_until: datetime | None = None


async def listing(
    request: ApiRequest, filters: Filters, limit: int, cursor: str | None = None
) -> Listing:
    """The newest runs that fit the filters, with what their automations are called."""
    page = request.page("console runs", limit, cursor, filters.wire)
    listed = await list_workspace_runs(
        request.work,
        request.actor,
        filters.automation_id,
        page,
        filters.filter(request.work.now),
    )
    ids = [run.automation_id for run in listed.runs]
    labels = await automations.labels_of(request.work, request.actor, ids)
    now = request.work.now
    rows = [Row(run, labels[run.automation_id], seconds_of(run, now)) for run in listed.runs]
    return Listing(rows, listed.cursor, listed.searched_until)


def seconds_of(run: AutomationRunShape, now: datetime) -> float | None:
    """The time a run has taken; None before it started."""
    if run.started_at is None:
        return None
    return ((run.completed_at or now) - run.started_at).total_seconds()


async def counts_of(request: ApiRequest, automation_id: Id | None) -> Mapping[str, str]:
    """The number of open runs by status, as the tabs of the list show it."""
    counts = await count_open(request.work, request.actor, automation_id, _MOST_COUNTED + 1)
    return {
        status.value: f"{_MOST_COUNTED:,}+" if number > _MOST_COUNTED else f"{number:,}"
        for status, number in counts.items()
    }


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


async def version_choices(request: ApiRequest, automation_id: Id | None) -> list[tuple[str, str]]:
    """Versions of an automation to filter by, the newest ones."""
    if automation_id is None:
        return []
    page = request.page("automation_versions", _MOST_CHOICES, None, automation_id)
    listed = await automations.list_versions(request.work, request.actor, automation_id, page)
    choices = [(str(one.id), f"v{one.version} {plain(one.status)}") for one in listed.versions]
    return [("", "Any version"), *choices]


def equal_calls(shell: Shell, filters: Filters) -> Mapping[str, str]:
    """The calls of the API that list the same, and save the filter."""
    return shell.calls(
        (runs_api.list_workspace_automation_runs, {**filters.wire, "limit": PAGE}),
        (api.create_run_filter, {"label": "My runs", "query": filters.wire}),
    )


_PAUSED = {
    "workspace": "Workspace paused",
    "automation": "Automation paused",
    "connection": "A connection it uses is paused",
}


def wait_words(waiting_for: dict[str, Any]) -> str:
    """A sentence about a `waitingFor`."""
    if waiting_for["kind"] == WaitKind.LIMITED:
        return _limited(waiting_for)
    if waiting_for["cause"] == PauseCause.CIRCUIT_BREAKER:
        words = "Circuit breaker open"
    else:
        words = _PAUSED[waiting_for["subject"]]
    if waiting_for.get("resuming"):
        words += " (resuming)"
    reason = waiting_for.get("reason")
    return f"{words}: {reason}" if reason else f"{words}."


def _limited(waiting_for: dict[str, Any]) -> str:
    host = waiting_for.get("host")
    if waiting_for["cause"] == WaitCause.ANSWER:
        words = f"Rate limited by {host or 'the provider'}"
    else:
        words = f"Waiting for a rate limit on {host or 'a connection'}"
    until = waiting_for.get("until")
    return f"{words}, until {until[:16].replace('T', ' ')} UTC." if until else f"{words}."


router = page_router()

_PERIODS = (("hour", "Last 24 hours"), ("day", "Last 30 days"))


@router.get(
    "/workspaces/{workspaceId}/runs/statistics",
    access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, heavy=True)),
)
async def get_statistics_page(
    request: ApiRequest, by: Grain = Grain.HOUR, automation_id: QueryId | None = None
) -> Response:
    """Look at how many runs ended, how, and how long they took."""
    over = span(request.work.now, by, None, None)
    statistics = await get_statistics(request.work, request.actor, automation_id, over)
    automations = await automation_choices(request, automation_id)
    return await console_page(
        request,
        "statistics.html",
        (api.get_run_statistics, {"by": by.value, "automationId": automation_id}),
        chart=chart_of(statistics),
        by=by.value,
        periods=_PERIODS,
        automation_id=automation_id,
        automations=automations,
        labels=dict(automations),
    )
