"""Admitting visitors through share links, which uses the links up."""

from dataclasses import dataclass

from sqlalchemy import ARRAY, LargeBinary, any_, bindparam, case, or_, update
from sqlalchemy.dialects.postgresql import BYTEA

from models.core.base import Id
from models.core.secret_keys.queries import is_older_key
from models.workspace.share_links.queries.visitors import Visitor, is_live, live_link, with_item
from models.workspace.share_links.rules import VISIT, new_session, read_session
from models.workspace.share_links.tables import ShareLink, share_link
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnavailableError
from runtime.prepared_statement import PreparedStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRequest:
    """A request to open a link: with its token, or with the session of an earlier visit."""

    token: str | None
    session: str | None
    prefetch: bool
    """The browser loads the page ahead of time; nobody has asked for it yet."""


_DIGEST, _DIGEST_KEY = (bindparam(name, type_=BYTEA) for name in ("digest", "digest_key"))
_OLDER = is_older_key(share_link.c.digest_key, _DIGEST_KEY)
_USE = PreparedStatement(
    update(share_link)
    .where(
        *is_live(),
        share_link.c.digest == any_(bindparam("digests", type_=ARRAY(LargeBinary))),
        or_(share_link.c.max_uses.is_(None), share_link.c.use_count < share_link.c.max_uses),
    )
    .values(
        use_count=share_link.c.use_count + 1,
        digest=case((_OLDER, _DIGEST), else_=share_link.c.digest),
        digest_key=case((_OLDER, _DIGEST_KEY), else_=share_link.c.digest_key),
    )
    .returning(*share_link.c),
    ShareLink,
)
"""Takes one of the uses that are left; PostgreSQL checks the row anew after waiting for another.

The digest moves to the current secret key."""


async def admit(
    work: UnitOfWork, keys: KeyRing, link_id: Id | None, request: VisitRequest
) -> Visitor:
    """Admit a visitor; a valid session takes no use of the link, the token takes one.

    Raises the same `NotFoundError` for a link that is unknown, revoked, expired or used up, for a
    wrong token, and for an item in the trash; `UnavailableError` for a prefetch.
    """
    if request.prefetch:
        raise UnavailableError("A share link is opened by its reader, not ahead of time.")
    if link_id is None:
        raise NotFoundError("share link")
    if request.session is not None:
        expires_at = read_session(keys, link_id, request.session, work.now)
        if expires_at is not None:
            link = await live_link(work, link_id)
            return Visitor(link=link, session=request.session, expires_at=expires_at)
    if request.token is None:
        raise NotFoundError("share link")
    digests = keys.digests(request.token.encode())
    parameters = {
        "link_id": link_id,
        "now": work.now,
        "digests": digests,
        "digest": digests[0],
        "digest_key": keys.current_id,
    }
    link = await with_item(work, await _USE.first(work, parameters))
    ends = [work.now + VISIT, *([link.expires_at] if link.expires_at else [])]
    expires_at = min(ends).replace(microsecond=0)
    session = new_session(keys, link_id, expires_at)
    return Visitor(link=link, session=session, expires_at=expires_at)
