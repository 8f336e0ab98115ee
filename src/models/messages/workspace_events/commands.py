"""Appending to the log of a workspace, in the transaction of what is logged."""

from datetime import datetime

from sqlalchemy import delete, func, insert, select

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
) -> None:
    """Append one event. Call it last: until the commit it blocks other writers of this log.

    They wait so that `seq` grows in the order of commits, and a reader of the log misses nothing.
    """
    place = f"workspace-log/{workspace_id}"
    await work.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(place, 0))))
    await work.execute(
        insert(workspace_event).values(
            workspace_id=workspace_id,
            type=kind.value,
            at=work.now,
            actor_type=principal.type.value,
            actor_user_id=principal.person,
            audience_user_id=audience_user_id,
            data=data,
        )
    )


async def purge_events(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove events from before a moment; how many. To be called until it gives 0."""
    old = (
        select(workspace_event.c.seq)
        .where(workspace_event.c.at < before)
        .order_by(workspace_event.c.at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (
        await work.execute(delete(workspace_event).where(workspace_event.c.seq.in_(old)))
    ).rowcount
