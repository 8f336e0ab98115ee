"""The log of a workspace as endpoints are told of it: numbered in the order of commits."""

from collections.abc import Collection, Sequence

from sqlalchemy import func, select

from models.core.base import Id
from models.messages.workspace_events.tables import WorkspaceEvent, workspace_event
from runtime.database import UnitOfWork

_event = workspace_event.c


async def head(work: UnitOfWork, workspace_id: Id) -> int:
    """The number of the newest event of a workspace; 0 without any."""
    newest = select(func.max(_event.seq)).where(_event.workspace_id == workspace_id)
    return await work.scalar(newest) or 0


async def events_between(
    work: UnitOfWork,
    workspace_id: Id,
    after: int,
    until: int,
    *,
    types: Collection[str],
    user_ids: Collection[Id],
    most: int,
) -> Sequence[WorkspaceEvent]:
    """The first events of these types behind one and up to another, in their order."""
    statement = (
        select(workspace_event)
        .where(
            _event.workspace_id == workspace_id,
            _event.seq > after,
            _event.seq <= until,
            _event.type.in_(types),
            _event.audience_user_id.is_(None) | _event.audience_user_id.in_(user_ids),
        )
        .order_by(_event.seq)
        .limit(most)
    )
    return await work.rows(statement, of=WorkspaceEvent)
