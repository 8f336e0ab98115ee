"""Beginning, using and ending sessions, and the links that begin one.

A link is used up by the transaction that begins its session: of two requests with one link, one
finds no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, or_, select, update

from models.core.base import Id
from models.core.purging import MAX_ROWS
from models.people.browser_sessions.errors import UnusableLinkError
from models.people.browser_sessions.rules import (
    IDLE,
    LIFETIME,
    LINK_LIFETIME,
    is_well_formed,
    new_token,
)
from models.people.browser_sessions.tables import browser_session, sign_in_link
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork

_session = browser_session.c


@dataclass(frozen=True, slots=True)
class BegunSession:
    """A session that has just begun; its token is told this once."""

    token: str
    expires_at: datetime


async def begin_session(work: UnitOfWork, user_id: Id) -> BegunSession:
    """Begin a session of a person, under a token that nobody has seen before."""
    token, expires_at = new_token(), work.now + LIFETIME
    await work.execute(
        insert(browser_session).values(
            digest=fingerprint(token.encode()),
            user_id=user_id,
            created_at=work.now,
            last_used_at=work.now,
            expires_at=expires_at,
        )
    )
    return BegunSession(token, expires_at)


async def end_session(work: UnitOfWork, token: str) -> None:
    """End a session at once; one that is gone already stays so."""
    this = _session.digest == fingerprint(token.encode())
    await work.execute(delete(browser_session).where(this))


async def mark_sessions_used(work: UnitOfWork, moments: Mapping[bytes, datetime]) -> None:
    """Set when sessions were used last, by their digests and never backwards."""
    for digest, moment in moments.items():
        older = _session.last_used_at < moment
        used = update(browser_session).where(_session.digest == digest, older)
        await work.execute(used.values(last_used_at=moment))


async def make_sign_in_link(work: UnitOfWork, user_id: Id) -> str:
    """The token of a link that signs a person in; the ones that were made before are void."""
    await work.execute(delete(sign_in_link).where(sign_in_link.c.user_id == user_id))
    token = new_token()
    await work.execute(
        insert(sign_in_link).values(
            digest=fingerprint(token.encode()),
            user_id=user_id,
            expires_at=work.now + LINK_LIFETIME,
        )
    )
    return token


async def sign_in_by_link(work: UnitOfWork, token: str) -> BegunSession:
    """Use up a link and begin the session of its person. Raises UnusableLinkError."""
    if not is_well_formed(token):
        raise UnusableLinkError
    taken = delete(sign_in_link).where(
        sign_in_link.c.digest == fingerprint(token.encode()), sign_in_link.c.expires_at > work.now
    )
    user_id: Id | None = await work.scalar(taken.returning(sign_in_link.c.user_id))
    if user_id is None:
        raise UnusableLinkError
    return await begin_session(work, user_id)


async def purge_sessions(work: UnitOfWork) -> int:
    """Remove a batch of sessions and links that are over; gives their number."""
    over = or_(_session.expires_at <= work.now, _session.last_used_at <= work.now - IDLE)
    sessions = select(_session.digest).where(over).limit(MAX_ROWS)
    old = sign_in_link.c.expires_at <= work.now
    links = select(sign_in_link.c.digest).where(old).limit(MAX_ROWS)
    statements = (
        delete(browser_session).where(_session.digest.in_(sessions)),
        delete(sign_in_link).where(sign_in_link.c.digest.in_(links)),
    )
    return sum([(await work.execute(statement)).rowcount for statement in statements])
