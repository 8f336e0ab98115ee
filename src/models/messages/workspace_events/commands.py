"""Appending to the log of a workspace, in the transaction of what is logged.

Most of the log is written by triggers of the tables it tells of: items, records, databases, runs,
members, notifications. Here is what needs to know more than a row says.
"""

from datetime import datetime

from sqlalchemy import delete, insert, select

from models.core.access.rules import Principal
from models.core.base import Id, JsonObject
from models.core.purging import MAX_ROWS
from models.messages.workspace_events.rules import EventType
from models.messages.workspace_events.tables import workspace_event
from runtime.database import UnitOfWork


async def append_event(
    work: UnitOfWork,
    principal: Principal,
    workspace_id: Id,
    kind: EventType,
    data: JsonObject,
    *,
    audience_user_id: Id | None = None,
    item_id: Id | None = None,
) -> None:
    """Append one event, for one user alone, or for who sees the item."""
    await work.execute(
        insert(workspace_event).values(
            workspace_id=workspace_id,
            type=kind.value,
            at=work.now,
            actor_type=principal.type.value,
            actor_user_id=principal.person,
            audience_user_id=audience_user_id,
            item_id=item_id,
            data=data,
        )
    )


async def purge_events(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Delete up to `limit` events from before a moment; return the number. Repeat until 0."""
    # Numbers grow with time, near enough: the oldest events are those with the least.
    oldest = (
        select(workspace_event.c.seq, workspace_event.c.at)
        .order_by(workspace_event.c.seq)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .cte("oldest")
    )
    old = select(oldest.c.seq).where(oldest.c.at < before)
    return (
        await work.execute(delete(workspace_event).where(workspace_event.c.seq.in_(old)))
    ).rowcount


async def purge_events_of(work: UnitOfWork, workspace_id: Id, limit: int = MAX_ROWS) -> int:
    """Delete up to `limit` events of a deleted workspace; return the number. Repeat until 0."""
    some = select(workspace_event.c.seq).where(workspace_event.c.workspace_id == workspace_id)
    of_it = delete(workspace_event).where(workspace_event.c.seq.in_(some.limit(limit)))
    return (await work.execute(of_it)).rowcount
