"""The events of a log that a member sees. Pure."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from models.content.items.audiences import Audience
from models.core.access.rules import Actor, Role
from models.core.base import Id
from models.messages.workspace_events.rules import types_read_with


class SeenEvent(Protocol):
    """The facts that are asked of an event to know who sees it."""

    @property
    def type(self) -> str: ...
    @property
    def audience_user_id(self) -> Id | None: ...
    @property
    def item_id(self) -> Id | None: ...


@dataclass(frozen=True, slots=True)
class Viewer:
    """A member who reads the log: their role, and the types their credential reads."""

    user_id: Id
    role: Role
    types: Set[str]

    @classmethod
    def of(cls, actor: Actor) -> "Viewer":
        """The viewer that an actor is."""
        return cls(actor.user_id, actor.role, types_read_with(actor.scopes))

    def sees(self, event: SeenEvent, audiences: Mapping[Id, Audience]) -> bool:
        """True when the viewer sees an event; who sees its item stands in `audiences`.

        An item that is gone for ever is seen by nobody.
        """
        if event.type not in self.types:
            return False
        if event.audience_user_id is not None and event.audience_user_id != self.user_id:
            return False
        if event.item_id is None:
            return True
        audience = audiences.get(event.item_id)
        return audience is not None and audience.has(self.user_id, self.role)
