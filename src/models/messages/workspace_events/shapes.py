"""The workspace log on the wire (decisions C13)."""

from models.core.access.rules import PrincipalType
from models.core.base import Id, JsonObject, Moment, Nullable, Shape
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
