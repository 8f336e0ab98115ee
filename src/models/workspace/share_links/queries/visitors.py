"""The visitors of share links, and the links that still open their items."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Uuid, bindparam, exists, or_, select

from models.content.items.queries import placement
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level, Principal, PrincipalType, Role
from models.core.base import Id
from models.people.members.queries import role_of
from models.people.workspaces.queries import live_workspace_of
from models.workspace.share_links.tables import ShareLink, share_link
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who was admitted: through which link, and until when."""

    link: ShareLink
    session: str
    expires_at: datetime

    @property
    def actor(self) -> Actor:
        """The visitor as a guest of the workspace, who has no grant of any kind."""
        principal = Principal(type=PrincipalType.SHARE_LINK, id=self.link.id, user_id=self.link.id)
        return Actor(principal=principal, workspace_id=self.link.workspace_id, role=Role.GUEST)


def is_live() -> tuple[ColumnElement[bool], ...]:
    """The conditions that the link `link_id` is neither revoked nor expired at `now`.

    Its workspace must exist.
    """
    now = bindparam("now", type_=Timestamp)
    _, live_workspace = live_workspace_of(share_link)
    return (
        share_link.c.id == bindparam("link_id", type_=Uuid),
        share_link.c.revoked_at.is_(None),
        or_(share_link.c.expires_at.is_(None), share_link.c.expires_at > now),
        exists().where(live_workspace),
    )


_LINK = PreparedStatement(select(share_link).where(*is_live()), ShareLink)


async def live_link(work: UnitOfWork, link_id: Id) -> ShareLink:
    """A link that still opens its item. Raises `NotFoundError`."""
    found = await _LINK.first(work, {"link_id": link_id, "now": work.now})
    return await with_item(work, found)


async def with_item(work: UnitOfWork, link: ShareLink | None) -> ShareLink:
    """The link. Raises `NotFoundError` when there is none, or its maker does not see its item."""
    if link is None or not await maker_sees(work, link):
        raise NotFoundError("share link")
    return link


async def maker_sees(work: UnitOfWork, link: ShareLink) -> bool:
    """True when the one who made a link sees its item now (docs/adr/0028).

    Nobody does whose item is in the trash or was restricted to others, or who left the workspace.
    """
    maker = link.created_by_user_id
    place = await placement(work, [link.workspace_id], link.workspace_item_id, maker)
    role = None if place is None else await role_of(work, link.workspace_id, maker)
    return place is not None and role is not None and level_on(place, role) >= Level.VIEW
