"""Statistics of the runs of a workspace, and of one automation."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Data, QueryId, Router
from api.routers.automation.automation_runs import WORKSPACE_RUNS
from api.routers.automation.automations import AUTOMATION, READ
from models.automation.run_statistics import queries
from models.automation.run_statistics.rules import Grain
from models.automation.run_statistics.shapes import RunStatistics
from models.core.access.rules import Level, Scope
from models.core.moments import InputMoment

router = Router(tags=["automation runs"])


@router.get(
    f"{WORKSPACE_RUNS}/statistics",
    access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, heavy=True),
)
async def get_run_statistics(
    request: ApiRequest,
    by: Grain = Grain.HOUR,
    since: InputMoment | None = None,
    until: InputMoment | None = None,
    automation_id: QueryId | None = None,
) -> Data[RunStatistics]:
    """Count the runs that ended, by outcome, with percentiles of durations and of queueing.

    The period is rounded to whole hours or days of UTC: the last 24 hours or 30 days unless others
    are asked for, at most 168 hours or 366 days. Hours are kept for 35 days, days for 400.
    """
    over = queries.span(request.work.now, by, since, until)
    return Data(await queries.get_statistics(request.work, request.actor, automation_id, over))


@router.get(f"{AUTOMATION}/runs/statistics", access=replace(READ, heavy=True))
async def get_automation_statistics(
    request: ApiRequest,
    by: Grain = Grain.HOUR,
    since: InputMoment | None = None,
    until: InputMoment | None = None,
) -> Data[RunStatistics]:
    """Count the runs of an automation that ended, as for a workspace."""
    over = queries.span(request.work.now, by, since, until)
    automation_id = request.ids["automationId"]
    return Data(await queries.get_statistics(request.work, request.actor, automation_id, over))
