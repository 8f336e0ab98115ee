"""The workspace log on the wire (decisions C13)."""

from models.core.access.rules import PrincipalType
from models.core.base import Id, JsonObject, Moment, Nullable, Shape
from models.messages.workspace_events.rows import EventRow
from models.messages.workspace_events.rules import EventType


class EventActor(Shape):
    """Whoever made it happen."""

    type: PrincipalType
    user_id: Id | None


class WorkspaceEventBody(Shape):
    """One event; `data` holds ids and small facts."""

    seq: int
    type: EventType
    at: Moment
    actor: EventActor
    data: JsonObject


class WorkspaceEventList(Shape):
    events: list[WorkspaceEventBody]
    cursor: Nullable[str]


def event_body(row: EventRow) -> WorkspaceEventBody:
    """A row of the log as the interface shows it."""
    return WorkspaceEventBody(
        seq=row.seq,
        type=EventType(row.type),
        at=row.at,
        actor=EventActor(type=PrincipalType(row.actor_type), user_id=row.actor_user_id),
        data=row.data,
    )
