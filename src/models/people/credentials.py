"""Credentials: sessions of people in a browser, and who a credential belongs to.

A session begins with a link (ADR 0082). One statement for each request, prepared once, finds who a
credential belongs to.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.access.rules import PrincipalType
from models.core.base import Id
from models.core.purging import MAX_ROWS
from models.people.api_keys import api_key
from models.people.users import USER, app_user, display_name
from models.people.workspaces import workspace, workspace_member
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import UnauthorizedError
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import LeadingStatement, Prefetch, PreparedStatement

LIFETIME = timedelta(days=7)
"""The longest time a session lasts, however much it is used."""
IDLE = timedelta(hours=24)
"""The time after its last use at which a session ends."""
USE_WRITTEN_EVERY = timedelta(minutes=1)
"""The least time between two writes of a session's last use."""
LINK_LIFETIME = timedelta(minutes=30)
MOST_LINKS = 5
"""The unused links of one person: a new one beyond them ends the oldest."""

_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def new_token() -> str:
    """A secret that no one guesses: 256 random bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def is_well_formed(token: str) -> bool:
    """True for what `new_token` may have made."""
    return _TOKEN.fullmatch(token) is not None


class BrowserSession(SQLModel, table=True):
    """A person who is signed in with one browser, by the digest of the cookie's token.

    It holds until `expires_at`, unless it is idle for too long before (`IDLE`).
    """

    __tablename__ = "browser_session"
    __table_args__ = (
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"], ondelete="CASCADE"),
        sa.Index("ix_browser_session_user_id", "user_id"),
        sa.Index("ix_browser_session_last_used_at", "last_used_at"),
    )

    digest: bytes = Field(sa_type=BYTEA, primary_key=True)
    user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    last_used_at: datetime = Field(sa_type=Timestamp)
    expires_at: datetime = Field(sa_type=Timestamp)


class SignInLink(SQLModel, table=True):
    """A link that signs one person in, once, until it expires."""

    __tablename__ = "sign_in_link"
    __table_args__ = (
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"], ondelete="CASCADE"),
        sa.Index("ix_sign_in_link_user_id", "user_id"),
        sa.Index("ix_sign_in_link_expires_at", "expires_at"),
    )

    digest: bytes = Field(sa_type=BYTEA, primary_key=True)
    user_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)


browser_session = table_of(BrowserSession)
sign_in_link = table_of(SignInLink)

BROWSER_SESSION = browser_session.c
"""The columns of sessions that `live_session_of_user` selects."""


def live_session_of_user() -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join of a user to the live session with the digest that the statement is given."""
    live = sa.and_(
        browser_session.c.user_id == USER.id,
        browser_session.c.digest == sa.bindparam("digest", type_=BYTEA),
        browser_session.c.expires_at > sa.func.now(),
        browser_session.c.last_used_at > sa.func.now() - IDLE,
    )
    return browser_session, live


class UnusableLinkError(UnauthorizedError):
    """The link was never made, was used, or has expired: it does not say which."""

    advice = "Create another link with `workspace sign-in`."

    def __init__(self) -> None:
        super().__init__(
            "This link is no longer valid (used, expired or replaced). Run `workspace sign-in` for"
            " a new one."
        )


async def person_of_link(work: UnitOfWork, token: str) -> str:
    """The name of the person whom a link signs in. Raises UnusableLinkError."""
    if not is_well_formed(token):
        raise UnusableLinkError
    link = sign_in_link.c
    live = link.digest == fingerprint(token.encode()), link.expires_at > work.now
    user_id = await work.scalar(sa.select(link.user_id).where(*live))
    if user_id is None:
        raise UnusableLinkError
    return await display_name(work, user_id)


@dataclass(frozen=True, slots=True)
class BegunSession:
    """A session that has just begun; its token is shown this once."""

    token: str
    expires_at: datetime


async def begin_session(work: UnitOfWork, user_id: Id) -> BegunSession:
    """Begin a session of a person, under a token that no one has seen before."""
    token, expires_at = new_token(), work.now + LIFETIME
    await work.execute(
        sa.insert(browser_session).values(
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
    this = BROWSER_SESSION.digest == fingerprint(token.encode())
    await work.execute(sa.delete(browser_session).where(this))


async def mark_sessions_used(work: UnitOfWork, moments: Mapping[bytes, datetime]) -> None:
    """Set when sessions were used last, by their digests and never backwards."""
    for digest, moment in moments.items():
        older = BROWSER_SESSION.last_used_at < moment
        used = sa.update(browser_session).where(BROWSER_SESSION.digest == digest, older)
        await work.execute(used.values(last_used_at=moment))


async def make_sign_in_link(work: UnitOfWork, user_id: Id) -> str:
    """The token of another link that signs a person in; links beyond `MOST_LINKS` end."""
    # Two links that are made at once are counted one after the other.
    await work.execute(sa.select(USER.id).where(USER.id == user_id).with_for_update(key_share=True))
    own = sign_in_link.c.user_id == user_id
    newest = sa.select(sign_in_link.c.digest).where(own).order_by(sign_in_link.c.expires_at.desc())
    kept = newest.limit(MOST_LINKS - 1)
    await work.execute(sa.delete(sign_in_link).where(own, sign_in_link.c.digest.not_in(kept)))
    token = new_token()
    await work.execute(
        sa.insert(sign_in_link).values(
            digest=fingerprint(token.encode()),
            user_id=user_id,
            expires_at=work.now + LINK_LIFETIME,
        )
    )
    return token


async def sign_in_by_link(work: UnitOfWork, token: str) -> BegunSession:
    """Use up a link and begin the session of its person. Raises UnusableLinkError.

    The link is used up by the transaction that begins its session: of two requests with one link,
    one finds no row.
    """
    if not is_well_formed(token):
        raise UnusableLinkError
    taken = sa.delete(sign_in_link).where(
        sign_in_link.c.digest == fingerprint(token.encode()), sign_in_link.c.expires_at > work.now
    )
    user_id: Id | None = await work.scalar(taken.returning(sign_in_link.c.user_id))
    if user_id is None:
        raise UnusableLinkError
    return await begin_session(work, user_id)


async def purge_sessions(work: UnitOfWork) -> int:
    """Remove a batch of sessions and links that are over; gives their number."""
    over = sa.or_(
        BROWSER_SESSION.expires_at <= work.now, BROWSER_SESSION.last_used_at <= work.now - IDLE
    )
    sessions = sa.select(BROWSER_SESSION.digest).where(over).limit(MAX_ROWS)
    old = sign_in_link.c.expires_at <= work.now
    links = sa.select(sign_in_link.c.digest).where(old).limit(MAX_ROWS)
    statements = (
        sa.delete(browser_session).where(BROWSER_SESSION.digest.in_(sessions)),
        sa.delete(sign_in_link).where(sign_in_link.c.digest.in_(links)),
    )
    return sum([(await work.execute(statement)).rowcount for statement in statements])


class KeyRow(Protocol):
    """A live key, its user, and that user's role in the key's workspace."""

    id: UUID
    workspace_id: UUID
    scopes: Sequence[str]
    expires_at: datetime | None
    last_used_at: datetime | None
    digest_key: bytes | None
    user_id: UUID
    email: str | None
    platform_admin: bool
    role: str | None


class SessionRow(Protocol):
    """The user of a session and one of their workspaces; both its columns are null without any."""

    id: UUID
    email: str | None
    name: str | None
    platform_admin: bool
    workspace_id: UUID | None
    role: str | None


class BrowserSessionRow(SessionRow, Protocol):
    """The same for a session in a browser, with when it was used last."""

    last_used_at: datetime
    expires_at: datetime


def _acting(kind: PrincipalType) -> sa.ColumnElement[str]:
    """Tells the transaction who acts: its events say so in the log of the workspace."""
    name = sa.literal(f"{kind.value}:").concat(sa.cast(app_user.c.id, sa.Text))
    return sa.func.set_config("workspace.actor", name, True).label("acting")


_KEY = PreparedStatement(
    sa.select(
        api_key.c.id,
        api_key.c.workspace_id,
        api_key.c.scopes,
        api_key.c.expires_at,
        api_key.c.last_used_at,
        api_key.c.digest_key,
        app_user.c.id.label("user_id"),
        app_user.c.email,
        app_user.c.platform_admin,
        workspace_member.c.role,
        _acting(PrincipalType.API_KEY),
    )
    .select_from(api_key)
    .join(workspace, workspace.c.id == api_key.c.workspace_id)
    .join(app_user, app_user.c.id == api_key.c.bound_user_id)
    .outerjoin(
        workspace_member,
        sa.and_(
            workspace_member.c.workspace_id == api_key.c.workspace_id,
            workspace_member.c.user_id == api_key.c.bound_user_id,
        ),
    )
    .where(
        api_key.c.digest == sa.bindparam("digest", type_=BYTEA),
        api_key.c.revoked_at.is_(None),
        workspace.c.deleted_at.is_(None),
    ),
    KeyRow,
)

_LEADING_KEY = LeadingStatement(
    _KEY,
    values={"workspace_id": "workspace_id", "user_id": "user_id"},
    arrays={"workspace_ids": "workspace_id"},
)

_PERSON = sa.select(
    app_user.c.id,
    app_user.c.email,
    app_user.c.name,
    app_user.c.platform_admin,
    workspace_member.c.workspace_id,
    workspace_member.c.role,
    _acting(PrincipalType.SESSION),
)

_MEMBERSHIPS = (
    workspace_member.join(
        workspace,
        sa.and_(
            workspace.c.id == workspace_member.c.workspace_id,
            workspace.c.deleted_at.is_(None),
        ),
    ),
    workspace_member.c.user_id == app_user.c.id,
)

_SESSION = PreparedStatement(
    _PERSON.select_from(app_user)
    .outerjoin(*_MEMBERSHIPS)
    .where(
        app_user.c.issuer == sa.bindparam("issuer"),
        app_user.c.subject == sa.bindparam("subject"),
    ),
    SessionRow,
)

_BROWSER_SESSION = PreparedStatement(
    _PERSON.add_columns(BROWSER_SESSION.last_used_at, BROWSER_SESSION.expires_at)
    .select_from(app_user)
    .join(*live_session_of_user())
    .outerjoin(*_MEMBERSHIPS),
    BrowserSessionRow,
)


async def key_by_digest(
    work: UnitOfWork, digests: Sequence[bytes], prefetches: Sequence[Prefetch] = ()
) -> KeyRow | None:
    """The live key with one of these digests, its user and that user's role, or None.

    What is prefetched takes `workspace_id`, `workspace_ids` and `user_id` from it.
    """
    for digest in digests:
        async with work.for_one_statement() as first:
            row = await _LEADING_KEY.first(first, {"digest": digest}, prefetches)
        if row is not None:
            work.prefetched_rows = first.prefetched_rows
            return row
    return None


async def session_user(work: UnitOfWork, issuer: str, subject: str) -> Sequence[SessionRow]:
    """The user an issuer calls `subject`: one row per membership, or one without."""
    return await _SESSION.rows(work, {"issuer": issuer, "subject": subject})


async def browser_session_user(work: UnitOfWork, digest: bytes) -> Sequence[BrowserSessionRow]:
    """The user of a live session: one row per membership, or one without; none when it is over."""
    return await _BROWSER_SESSION.rows(work, {"digest": digest})


class OutdatedKey(Protocol):
    """A live key whose digest was made with an older secret key, which it therefore needs."""

    id: UUID
    name: str
    prefix: str
    workspace_id: UUID
    workspace_name: str
    last_used_at: datetime | None


async def outdated_keys(
    work: UnitOfWork, secret_key_id: bytes, limit: int
) -> Sequence[OutdatedKey]:
    """The keys that were not used under the current secret key, the last used first."""
    columns = api_key.c
    statement = (
        sa.select(
            columns.id,
            columns.name,
            columns.prefix,
            columns.workspace_id,
            workspace.c.name.label("workspace_name"),
            columns.last_used_at,
        )
        .join(workspace, workspace.c.id == columns.workspace_id)
        .where(
            columns.digest_key.is_distinct_from(secret_key_id),
            columns.revoked_at.is_(None),
            sa.or_(columns.expires_at.is_(None), columns.expires_at > work.now),
            workspace.c.deleted_at.is_(None),
        )
        .order_by(columns.last_used_at.desc().nulls_last(), columns.id)
        .limit(limit)
    )
    return await work.rows(statement, of=OutdatedKey)
