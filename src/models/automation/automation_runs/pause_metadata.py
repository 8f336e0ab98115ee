"""Metadata of runs that rest under a pause: `waitingFor`."""

from collections.abc import Mapping, Sequence

from models.automation.automation_runs.rows import RunRow
from models.automation.automation_runs.rules import RunStatus
from models.core.base import Id, JsonObject
from models.core.pauses.queries import Rest, rests_of
from runtime.database import UnitOfWork
from runtime.timestamps import wire_timestamp


async def waits_for_pauses(work: UnitOfWork, runs: Sequence[RunRow]) -> Mapping[Id, JsonObject]:
    """`waitingFor` of the runs among these that rest under a pause."""
    queued = [run for run in runs if run.status == RunStatus.QUEUED]
    if not queued:
        return {}
    rests = await rests_of(work, queued[0].workspace_id, [run.id for run in queued])
    return {run_id: _waits_for(rest) for run_id, rest in rests.items()}


def _waits_for(rest: Rest) -> JsonObject:
    return {
        "kind": "paused",
        "subject": rest.subject_kind,
        "subjectId": str(rest.subject_id),
        "cause": rest.cause,
        "reason": rest.reason,
        "since": wire_timestamp(rest.paused_at),
        "resuming": rest.resumed_at is not None,
    }
