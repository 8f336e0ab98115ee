"""Removing a workspace for good, with all that is in it."""

from sqlalchemy import select

from models.core.base import Id
from models.core.purging import MAX_ROWS, purge
from models.people.workspaces.tables import workspace
from runtime.database import UnitOfWork


async def purge_workspace(work: UnitOfWork, workspace_id: Id, limit: int = MAX_ROWS) -> int:
    """Remove a workspace; gives how many rows were removed, to be called until it is 0."""
    return await purge(
        work, workspace, select(workspace.c.id).where(workspace.c.id == workspace_id), limit
    )
