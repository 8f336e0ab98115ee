"""Deleting runs that ended long enough ago, with their node runs."""

from datetime import datetime

from sqlalchemy import select, true

from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.tables import automation_run
from models.core.purging import MAX_HEADS, MAX_ROWS, purge
from models.people.workspaces.queries import every_workspace
from runtime.database import UnitOfWork

_run = automation_run.c


async def purge_runs(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Delete runs that ended before a moment, with their node runs. Versions stay.

    Returns how many rows were deleted, at most `limit`; to be called until it is 0.
    """
    workspace = every_workspace()
    runs = (
        select(_run.id)
        .where(
            _run.workspace_id == workspace.c.id,
            # A run is accepted before it ends: of each workspace only the oldest runs are read.
            _run.created_at < before,
            _run.completed_at < before,
            _run.status.not_in(OPEN_RUN),
        )
        .order_by(_run.created_at)
        .limit(MAX_HEADS)
        .correlate(workspace)
        .lateral("ended")
    )
    first = select(runs.c.id).select_from(workspace.join(runs, true())).limit(MAX_HEADS)
    old = select(_run.id).where(_run.id.in_(first)).order_by(_run.created_at)
    return await purge(work, automation_run, old, limit)
