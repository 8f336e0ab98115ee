"""The content of the first page."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.console.runs.listing import Filters, Listing, listing
from api.kernel.request import ApiRequest
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.run_queries import RunPeriod
from models.automation.automations.queries import next_due
from models.automation.automations.shapes import AutomationSummary
from models.automation.waits.pending import PendingApproval, pending_approvals
from models.core.access.rules import Scope

MOST = 8
_NO_RUNS = Listing((), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The lists of the page; each is short, and its page has the rest."""

    approvals: Sequence[PendingApproval]
    failed: Listing = _NO_RUNS
    running: Listing = _NO_RUNS
    waiting: Listing = _NO_RUNS
    recent: Listing = _NO_RUNS
    due: Sequence[AutomationSummary] = ()

    @property
    def is_quiet(self) -> bool:
        """Nothing has run, and nothing will by itself."""
        return not (self.recent.rows or self.due or self.approvals)


async def overview_of(request: ApiRequest) -> Overview:
    """The content, as far as the reader may see it: decisions they are asked for in any case."""
    approvals = await pending_approvals(request.work, request.actor, MOST)
    if Scope.AUTOMATIONS_READ not in request.actor.scopes:
        return Overview(approvals=approvals)
    return Overview(
        approvals=approvals,
        failed=await listing(request, Filters(status=RunStatus.FAILED, period=RunPeriod.DAY), MOST),
        running=await listing(request, Filters(status=RunStatus.RUNNING), MOST),
        waiting=await listing(request, Filters(status=RunStatus.WAITING), MOST),
        recent=await listing(request, Filters(), MOST),
        due=await next_due(request.work, request.actor, MOST),
    )
