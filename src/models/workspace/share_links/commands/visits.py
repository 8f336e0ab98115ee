"""Letting visitors in through share links, and telling who still is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    LargeBinary,
    Uuid,
    any_,
    bindparam,
    exists,
    or_,
    select,
    update,
)

from models.content.items.queries import placement
from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.core.base import Id
from models.people.workspaces.tables import workspace
from models.workspace.share_links.rules import VISIT, new_session, read_session
from models.workspace.share_links.tables import share_link
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnavailableError
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """What somebody shows at a link: its token, or the session of somebody let in before."""

    token: str | None
    session: str | None
    speculative: bool
    """The browser only guesses that the page will be wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who was let in: through which link, and until when."""

    link: Any
    session: str
    expires_at: datetime

    @property
    def actor(self) -> Actor:
        """The visitor as a member without any right of its own."""
        principal = Principal(type=PrincipalType.SHARE_LINK, id=self.link.id, user_id=self.link.id)
        return Actor(principal=principal, workspace_id=self.link.workspace_id, role=Role.GUEST)


def _usable() -> tuple[ColumnElement[bool], ...]:
    """The conditions of a link that neither its maker nor time has ended."""
    now = bindparam("now", type_=Timestamp)
    return (
        share_link.c.id == bindparam("link_id", type_=Uuid),
        share_link.c.revoked_at.is_(None),
        or_(share_link.c.expires_at.is_(None), share_link.c.expires_at > now),
        exists().where(
            workspace.c.id == share_link.c.workspace_id, workspace.c.deleted_at.is_(None)
        ),
    )


_LINK = PreparedStatement(select(share_link).where(*_usable()))

_USE = PreparedStatement(
    update(share_link)
    .where(
        *_usable(),
        share_link.c.digest == any_(bindparam("digests", type_=ARRAY(LargeBinary))),
        or_(share_link.c.max_uses.is_(None), share_link.c.use_count < share_link.c.max_uses),
    )
    .values(use_count=share_link.c.use_count + 1)
    .returning(*share_link.c)
)
"""One use, of those that are left: PostgreSQL judges the row anew after waiting for another."""


async def let_in(work: UnitOfWork, keys: KeyRing, link_id: Id | None, knock: Knock) -> Visitor:
    """Let a visitor in; who shows the token and no session takes one of the uses.

    Raises the same `NotFoundError` for a link that is unknown, revoked, expired or used up, for a
    wrong token, and for an item in the trash; `UnavailableError` to a browser that prefetches.
    """
    if knock.speculative:
        raise UnavailableError("A share link is opened by its reader, not ahead of time.")
    if link_id is None:
        raise NotFoundError("share link")
    if knock.session is not None:
        expires_at = read_session(keys, link_id, knock.session, work.now)
        if expires_at is not None:
            link = await live_link(work, link_id)
            return Visitor(link=link, session=knock.session, expires_at=expires_at)
    if knock.token is None:
        raise NotFoundError("share link")
    digests = keys.digests(knock.token.encode())
    parameters = {"link_id": link_id, "now": work.now, "digests": digests}
    link = await _shown(work, await _USE.first(work, parameters))
    ends = [work.now + VISIT, *([link.expires_at] if link.expires_at else [])]
    expires_at = min(ends).replace(microsecond=0)
    session = new_session(keys, link_id, expires_at)
    return Visitor(link=link, session=session, expires_at=expires_at)


async def live_link(work: UnitOfWork, link_id: Id) -> Any:
    """The row of a link that still opens its item; raises `NotFoundError`."""
    return await _shown(work, await _LINK.first(work, {"link_id": link_id, "now": work.now}))


async def _shown(work: UnitOfWork, link: Any | None) -> Any:
    """The link, unless there is none or its item is in the trash."""
    if link is None:
        raise NotFoundError("share link")
    places = [link.workspace_id]
    if await placement(work, places, link.workspace_item_id, link.created_by_user_id) is None:
        raise NotFoundError("share link")
    return link
