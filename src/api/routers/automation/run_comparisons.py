"""Two runs of an automation side by side."""

from dataclasses import replace

from api.kernel.routing import ApiRequest, Data, QueryId, Router
from api.routers.automation.automation_runs import RUN
from api.routers.automation.automations import READ
from models.automation.run_comparisons.queries import compare
from models.automation.run_comparisons.shapes import RunComparison

router = Router(tags=["automation runs"])


@router.get(f"{RUN}/comparison", access=replace(READ, snapshot=True, heavy=True))
async def compare_automation_runs(
    request: ApiRequest, with_: QueryId | None = None
) -> Data[RunComparison]:
    """Compare a run with another one of its automation, node by node.

    Without `with` that is the last run before it that succeeded and was no test. Nodes are the same
    by id and scope. Values are compared by path, as far as they are not too large.
    """
    place = request.ids["automationId"], request.ids["runId"]
    return Data(await compare(request.work, request.actor, *place, with_))
