"""Metadata of runs that a pause or an outbound limit holds up: `waitingFor`."""

from collections.abc import Mapping, Sequence

from models.automation.automation_runs.rows import RunRow
from models.automation.automation_runs.rules import ACTIVE_RUN, RunStatus
from models.core.base import Id, JsonObject
from models.core.pauses.queries import rests_of, waiting_for
from models.sources.outbound_limits.waiting import waits_of
from runtime.database import UnitOfWork


async def waits_of_runs(work: UnitOfWork, runs: Sequence[RunRow]) -> Mapping[Id, JsonObject]:
    """`waitingFor` of the runs among these that rest, or of which a call waits."""
    queued = [run.id for run in runs if run.status == RunStatus.QUEUED]
    under_way = [run.id for run in runs if run.status in ACTIVE_RUN]
    if not queued and not under_way:
        return {}
    workspace_id = runs[0].workspace_id
    rests = await rests_of(work, workspace_id, queued)
    return {
        **{run_id: waiting_for(rest) for run_id, rest in rests.items()},
        **await waits_of(work, workspace_id, under_way),
    }
