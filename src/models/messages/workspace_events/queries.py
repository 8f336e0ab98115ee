"""Reading the workspace log."""

from sqlalchemy import or_, select

from models.core.access.rules import Actor
from models.core.pagination import PageRequest
from models.messages.workspace_events.shapes import (
    EventActor,
    WorkspaceEventBody,
    WorkspaceEventList,
)
from models.messages.workspace_events.tables import WorkspaceEvent, workspace_event
from runtime.database import UnitOfWork


async def list_events(
    work: UnitOfWork, actor: Actor, since: int, page: PageRequest
) -> WorkspaceEventList:
    """The events behind `since` that the actor may see, oldest first."""
    event = workspace_event.c
    after = since if page.after is None else page.after[0]
    rows = await work.rows(
        select(workspace_event)
        .where(
            event.workspace_id == actor.workspace_id,
            event.seq > after,
            or_(event.audience_user_id.is_(None), event.audience_user_id == actor.user_id),
        )
        .order_by(event.seq)
        .limit(page.fetch),
        of=WorkspaceEvent,
    )
    shown = page.of(rows, lambda row: (row.seq,))
    return WorkspaceEventList(events=[_body(row) for row in shown.items], cursor=shown.cursor)


def _body(row: WorkspaceEvent) -> WorkspaceEventBody:
    return WorkspaceEventBody(
        seq=row.seq,
        type=row.type,
        at=row.at,
        actor=EventActor(type=row.actor_type, user_id=row.actor_user_id),
        data=row.data,
    )
