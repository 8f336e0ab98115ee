"""Events of a workspace, as far as the readers of its log may see them."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from models.content.items.queries import Audience, audiences
from models.core.access.rules import Actor, Role
from models.core.base import Id
from models.core.pagination import PageRequest
from models.messages.workspace_events import log
from models.messages.workspace_events.rules import types_read_with
from runtime.database import UnitOfWork, Work


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
        return cls(actor.user_id, actor.role, types_read_with(actor.scopes))

    def sees(self, event: SeenEvent, audiences: Mapping[Id, Audience]) -> bool:
        """True when the viewer sees an event; who sees its item stands in `audiences`.

        An item that was deleted for good is visible to no one.
        """
        if event.type not in self.types:
            return False
        if event.audience_user_id is not None and event.audience_user_id != self.user_id:
            return False
        if event.item_id is None:
            return True
        audience = audiences.get(event.item_id)
        return audience is not None and audience.has(self.user_id, self.role)


READ_AT_ONCE = 500
LOOKED_THROUGH = 5_000
"""Events that one page goes through at most, however few of them its reader sees."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a log: its events, who sees their items, and up to which number it goes."""

    events: Sequence[log.EventRow]
    audiences: Mapping[Id, Audience]
    until: int

    def seen_by(self, viewer: Viewer) -> list[log.EventRow]:
        """The events that the viewer sees."""
        return [one for one in self.events if viewer.sees(one, self.audiences)]


async def read_part(
    work: Work,
    workspace_id: Id,
    after: int,
    until: int,
    *,
    types: Collection[str],
    user_ids: Collection[Id],
) -> Part:
    """The first events behind `after` and up to `until`, which the log is whole to.

    Who sees an item is asked after the events were read, so that a member who lost the right before
    an event never reads it.
    """
    events = await log.events_between(
        work, workspace_id, after, until, types=types, user_ids=user_ids, most=READ_AT_ONCE
    )
    named = {one.item_id for one in events if one.item_id is not None}
    seen = await audiences(work, workspace_id, named)
    return Part(events, seen, events[-1].seq if len(events) == READ_AT_ONCE else until)


async def list_events(
    work: UnitOfWork, actor: Actor, since: int, page: PageRequest
) -> log.WorkspaceEventList:
    """The events behind `since` that the actor sees, oldest first.

    A page that ends before all was looked through has a cursor, however few events it shows.
    """
    viewer = Viewer.of(actor)
    after = since if page.after is None else page.after[0]
    newest_seq = await log.head(work, actor.workspace_id)
    until = await log.end_of_next(work, actor.workspace_id, after, newest_seq, most=LOOKED_THROUGH)
    rows: list[log.EventRow] = []
    while after < until and len(rows) < page.fetch:
        part = await read_part(
            work,
            actor.workspace_id,
            after,
            until,
            types=viewer.types,
            user_ids=[actor.user_id],
        )
        rows += part.seen_by(viewer)
        after = part.until
    shown = page.of(rows[: page.fetch], lambda row: (row.seq,))
    cursor = shown.cursor
    if cursor is None and until < newest_seq:
        cursor = page.cursor_behind(until)
    return log.WorkspaceEventList(
        events=[log.event_body(row) for row in shown.items], cursor=cursor
    )
