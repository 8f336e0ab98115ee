"""The first page of a workspace: what needs attention, what failed, runs and comes next."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from starlette.responses import Response

from api.console.controls import Chart, chart_of
from api.console.forms import paged
from api.console.rendering import console_page, home_of, see_other
from api.console.routing import page_router
from api.console.runs.listing import Filters, Listing, listing
from api.kernel.browsers import is_secure, read_cookie
from api.kernel.routing import Access, ApiRequest
from models.automation.automation_runs.rules import RunStatus
from models.automation.automations.queries import next_due
from models.automation.automations.shapes import AutomationSummary
from models.automation.incidents.queries import IncidentState, IncidentSummary, list_incidents
from models.automation.run_statistics import Grain, get_statistics, span
from models.automation.waits.queries import PendingApproval, pending_approvals
from models.core.access.rules import Scope
from models.sources.data_source_runs.overviews import DataSourceDetail, list_data_sources
from models.workspace.changes.queries import list_changes
from models.workspace.changes.rules import WAITING
from models.workspace.changes.shapes import ChangeSetSummary
from models.workspace.usage import FirstStep, steps_done

router = page_router()


HOME = "/workspaces/{workspaceId}"
_READ = Access(scopes=[Scope.WORKSPACE_READ])
_HIDDEN = "first-steps"
"""The cookie of a workspace whose first steps are hidden."""


@router.get(HOME, access=paged(_READ))
async def get_home(request: ApiRequest) -> Response:
    """Look at a workspace."""
    overview, first = await overview_of(request), await _first_steps(request)
    return await console_page(request, "home.html", overview=overview, first=first)


MOST = 8
_LOOKED_AT = 50
"""The newest data sources and change sets that are looked through."""
_NO_RUNS = Listing((), None)


@dataclass(frozen=True, slots=True)
class Step:
    """A first step, the page on which it is taken, and the scope that this takes."""

    step: FirstStep
    label: str
    page: str
    scope: Scope


_STEPS: Sequence[Step] = (
    Step(FirstStep.TABLE, "Create a database", "databases/new", Scope.DATABASES_WRITE),
    Step(FirstStep.AUTOMATION, "Create an automation", "automations/new", Scope.AUTOMATIONS_WRITE),
    Step(FirstStep.RUN, "Run an automation", "automations", Scope.AUTOMATIONS_WRITE),
    Step(FirstStep.INVITATION, "Invite someone", "settings/invitations", Scope.MEMBERS_INVITE),
    Step(FirstStep.API_KEY, "Create an API key", "settings/api-keys/new", Scope.API_KEYS_WRITE),
)


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """The first steps that the reader may take, and which of them were taken."""

    steps: Sequence[Step]
    finished_steps: Collection[FirstStep]

    @property
    def left(self) -> int:
        return sum(one.step not in self.finished_steps for one in self.steps)


_HIDDEN_FOR = timedelta(days=365)


@router.post(f"{HOME}/first-steps/dismiss", access=replace(paged(_READ), safe=True))
async def dismiss_first_steps(request: ApiRequest) -> Response:
    """Hide the first steps in this browser."""
    home = home_of(request.actor.workspace_id)
    answer = see_other(home)
    answer.set_cookie(
        _HIDDEN,
        "hidden",
        max_age=int(_HIDDEN_FOR.total_seconds()),
        path=home,
        secure=is_secure(request.services.settings),
        httponly=True,
        samesite="lax",
    )
    return answer


async def _first_steps(request: ApiRequest) -> FirstSteps | None:
    """The first steps, until the reader has taken or hidden them."""
    steps = [one for one in _STEPS if one.scope in request.actor.scopes]
    if not steps or read_cookie(request.scope["headers"], _HIDDEN):
        return None
    first = FirstSteps(steps, await steps_done(request.work, request.actor.workspace_id))
    return first if first.left else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The lists of the page; each is short, and its page has the rest."""

    approvals: Sequence[PendingApproval]
    proposals: Sequence[ChangeSetSummary] = ()
    incidents: Sequence[IncidentSummary] = ()
    """The open ones: similar failures are one, and a repair closes it."""
    running: Listing = _NO_RUNS
    waiting: Listing = _NO_RUNS
    recent: Listing = _NO_RUNS
    due: Sequence[AutomationSummary] = ()
    refreshed: Sequence[DataSourceDetail] = ()
    chart: Chart | None = None
    """The runs that ended in the last 24 hours, if any did."""


async def overview_of(request: ApiRequest) -> Overview:
    """The content, as far as the reader may see it: decisions they are asked for in any case."""
    approvals = await pending_approvals(request.work, request.actor, MOST)
    proposals = await _proposals(request)
    refreshed = await _refreshed(request)
    if Scope.AUTOMATIONS_READ not in request.actor.scopes:
        return Overview(approvals=approvals, proposals=proposals, refreshed=refreshed)
    return Overview(
        approvals=approvals,
        proposals=proposals,
        refreshed=refreshed,
        incidents=await _incidents(request),
        running=await listing(request, Filters(status=RunStatus.RUNNING), MOST),
        waiting=await listing(request, Filters(status=RunStatus.WAITING), MOST),
        recent=await listing(request, Filters(), MOST),
        due=await next_due(request.work, request.actor, MOST),
        chart=await _chart(request),
    )


async def _incidents(request: ApiRequest) -> Sequence[IncidentSummary]:
    turn = request.page("console incidents", MOST, None, IncidentState.OPEN, None)
    listed = await list_incidents(request.work, request.actor, turn, IncidentState.OPEN)
    return listed.incidents


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
