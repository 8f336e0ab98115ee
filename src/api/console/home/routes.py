"""The first page of a workspace: what waits for the reader, what failed, runs, comes next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from starlette.responses import Response

from api.console.charts import Chart, chart_of
from api.console.forms import paged
from api.console.rendering import page
from api.console.routing import page_router
from api.console.runs.listing import Filters, Listing, Row, listing
from api.console.shell import shell_of
from api.kernel.routing import Access, ApiRequest
from models.automation.automation_runs.filters import RunPeriod
from models.automation.automation_runs.rules import RunStatus
from models.automation.automations.queries import next_due
from models.automation.automations.shapes import AutomationSummary
from models.automation.run_statistics.queries import get_statistics, span
from models.automation.run_statistics.sums import Grain
from models.automation.waits.queries import PendingApproval, pending_approvals
from models.core.access.rules import Scope
from models.sources.data_source_overviews import DataSourceDetail, list_data_sources
from models.workspace.changes.queries import list_changes
from models.workspace.changes.rules import WAITING
from models.workspace.changes.shapes import ChangeSetSummary

router = page_router()


@router.get("/workspaces/{workspaceId}", access=paged(Access(scopes=[Scope.WORKSPACE_READ])))
async def get_home(request: ApiRequest) -> Response:
    """Look at a workspace."""
    shell = await shell_of(request)
    return page(request, "home.html", shell, overview=await overview_of(request))


MOST = 8
_FAILURES = 100
"""The newest failed runs that are told by what they have in common."""
_LOOKED_AT = 50
"""The newest data sources and change sets that are looked through."""
_NO_RUNS = Listing((), None)


@dataclass(slots=True)
class Failure:
    """Runs of an automation that failed alike: the newest of them, and how many there are."""

    newest: Row
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of the last day; with `more` there are others that were not looked at."""

    groups: Sequence[Failure] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The lists of the page; each is short, and its page has the rest."""

    approvals: Sequence[PendingApproval]
    proposals: Sequence[ChangeSetSummary] = ()
    failures: Failures = field(default_factory=Failures)
    running: Listing = _NO_RUNS
    waiting: Listing = _NO_RUNS
    recent: Listing = _NO_RUNS
    due: Sequence[AutomationSummary] = ()
    refreshed: Sequence[DataSourceDetail] = ()
    chart: Chart | None = None
    """The runs that ended in the last 24 hours, if any did."""

    @property
    def is_quiet(self) -> bool:
        """Nothing has run, and nothing will by itself."""
        return not (self.recent.rows or self.due or self.approvals)


async def overview_of(request: ApiRequest) -> Overview:
    """The content, as far as the reader may see it: decisions they are asked for in any case."""
    approvals = await pending_approvals(request.work, request.actor, MOST)
    proposals = await _proposals(request)
    refreshed = await _refreshed(request)
    if Scope.AUTOMATIONS_READ not in request.actor.scopes:
        return Overview(approvals=approvals, proposals=proposals, refreshed=refreshed)
    failed = Filters(status=RunStatus.FAILED, period=RunPeriod.DAY)
    return Overview(
        approvals=approvals,
        proposals=proposals,
        refreshed=refreshed,
        failures=grouped(await listing(request, failed, _FAILURES)),
        running=await listing(request, Filters(status=RunStatus.RUNNING), MOST),
        waiting=await listing(request, Filters(status=RunStatus.WAITING), MOST),
        recent=await listing(request, Filters(), MOST),
        due=await next_due(request.work, request.actor, MOST),
        chart=await _chart(request),
    )


def grouped(failed: Listing) -> Failures:
    """The failures by automation and message, the newest first."""
    groups: dict[tuple[object, str], Failure] = {}
    for row in failed.rows:
        key = (row.run.automation_id, row.note)
        if key in groups:
            groups[key].runs += 1
        else:
            groups[key] = Failure(row)
    kept = list(groups.values())[:MOST]
    return Failures(kept, more=failed.cursor is not None or len(groups) > MOST)


async def _chart(request: ApiRequest) -> Chart | None:
    day = span(request.work.now, Grain.HOUR, None, None)
    statistics = await get_statistics(request.work, request.actor, None, day)
    return chart_of(statistics) if statistics.total.runs else None


async def _proposals(request: ApiRequest) -> Sequence[ChangeSetSummary]:
    """The change sets that wait for who may apply them."""
    if Scope.WORKSPACE_CHANGES_APPLY not in request.actor.scopes:
        return ()
    page = request.page("console changes", _LOOKED_AT, None)
    listed = await list_changes(request.work, request.actor, page)
    return [one for one in listed.changes if one.status in WAITING][:MOST]


async def _refreshed(request: ApiRequest) -> Sequence[DataSourceDetail]:
    """The data sources whose newest run began in the last day, the newest first."""
    if Scope.DATA_SOURCES_READ not in request.actor.scopes:
        return ()
    page = request.page("console data sources", _LOOKED_AT, None)
    listed = await list_data_sources(request.work, request.actor, page)
    since = request.work.now - timedelta(days=1)
    recent = [one for one in listed.data_sources if (one.last_run_at or since) > since]
    return sorted(recent, key=lambda one: one.last_run_at or since, reverse=True)[:MOST]
