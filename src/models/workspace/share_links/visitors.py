"""Share links and their visitors: the secrets of a link, admission, and the links still open.

The table holds a digest of the token and never the token."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.content.items.queries import placement
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Level, Principal, PrincipalType, Role, level_on
from models.core.base import Id
from models.core.secret_keys import is_older_key
from models.people.members import role_of
from models.people.workspaces import live_workspace_of
from runtime import base64url
from runtime.crypto import KeyRing, fingerprint
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnavailableError
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


class ShareLink(SQLModel, table=True):
    """Public access to one item; `use_count` counts the visits admitted by the token.

    `digest_key` is the id of the secret key that its digest was made with.
    """

    __tablename__ = "share_link"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("workspace_item_id", "item.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        sa.CheckConstraint("use_count >= 0 AND use_count <= max_uses", name="use_count"),
        sa.Index(
            "ix_share_link_workspace_id_workspace_item_id_created_at_id",
            "workspace_id",
            "workspace_item_id",
            "created_at",
            "id",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    workspace_item_id: Id
    kind: str
    digest: bytes = Field(sa_type=BYTEA)
    digest_key: bytes | None = Field(default=None, sa_type=BYTEA)
    expires_at: datetime | None = Field(default=None, sa_type=Timestamp)
    max_uses: int | None = None
    use_count: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    allow_download: bool
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    revoked_at: datetime | None = Field(default=None, sa_type=Timestamp)


share_link = table_of(ShareLink)


SHAREABLE = frozenset(
    {
        ItemKind.FOLDER,
        ItemKind.PAGE,
        ItemKind.NOTE,
        ItemKind.DASHBOARD,
        ItemKind.CANVAS,
        ItemKind.VIEW,
        ItemKind.FORM,
        ItemKind.DATABASE,
        ItemKind.FILE,
    }
)
"""The kinds of items that a link may open (interface.md#share-links)."""

MAX_USES = 1_000_000_000

VISIT = timedelta(hours=1)
"""The time for which a session lets a visitor read without another use of the link."""

_TOKEN_BYTES = 32
_EXPIRY_BYTES = 6
_MAC_BYTES = 16


def new_token() -> str:
    """A fresh secret of 256 bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def new_session(keys: KeyRing, link_id: Id, expires_at: datetime) -> str:
    """A signed text that proves until `expires_at` that a visitor was admitted; never stored."""
    expiry = int(expires_at.timestamp()).to_bytes(_EXPIRY_BYTES, "big")
    mac = keys.sign(_message(link_id, expiry))[:_MAC_BYTES]
    return base64url.encode(expiry + mac)


def read_session(keys: KeyRing, link_id: Id, session: str, now: datetime) -> datetime | None:
    """The expiry of a session of this link; None for an expired one and for any other text."""
    raw = base64url.decode(session) or b""
    expiry, mac = raw[:_EXPIRY_BYTES], raw[_EXPIRY_BYTES:]
    if not keys.verify(_message(link_id, expiry), mac, _MAC_BYTES):
        return None
    expires_at = datetime.fromtimestamp(int.from_bytes(expiry, "big"), UTC)
    return expires_at if expires_at > now else None


def _message(link_id: Id, expiry: bytes) -> bytes:
    return fingerprint(b"share session", link_id.bytes, expiry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A visitor who was admitted: the link, and the end of the visit."""

    link: ShareLink
    session: str
    expires_at: datetime

    @property
    def actor(self) -> Actor:
        """The visitor as a guest of the workspace, who has no grant of any kind."""
        principal = Principal(type=PrincipalType.SHARE_LINK, id=self.link.id, user_id=self.link.id)
        return Actor(principal=principal, workspace_id=self.link.workspace_id, role=Role.GUEST)


def is_live() -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions that the link `link_id` is neither revoked nor expired at `now`.

    Its workspace must exist.
    """
    now = sa.bindparam("now", type_=Timestamp)
    _, live_workspace = live_workspace_of(share_link)
    return (
        share_link.c.id == sa.bindparam("link_id", type_=sa.Uuid),
        share_link.c.revoked_at.is_(None),
        sa.or_(share_link.c.expires_at.is_(None), share_link.c.expires_at > now),
        sa.exists().where(live_workspace),
    )


_LINK = PreparedStatement(sa.select(share_link).where(*is_live()), ShareLink)


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

    False for an item in the trash or restricted to others, and for a creator who left the
    workspace.
    """
    maker = link.created_by_user_id
    place = await placement(work, [link.workspace_id], link.workspace_item_id, maker)
    role = None if place is None else await role_of(work, link.workspace_id, maker)
    return place is not None and role is not None and level_on(place, role) >= Level.VIEW


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRequest:
    """A request to open a link: with its token, or with the session of an earlier visit."""

    token: str | None
    session: str | None
    prefetch: bool
    """The browser loads the page ahead of time; no one has opened it yet."""


_DIGEST, _DIGEST_KEY = (sa.bindparam(name, type_=BYTEA) for name in ("digest", "digest_key"))
_OLDER = is_older_key(share_link.c.digest_key, _DIGEST_KEY)
_USE = PreparedStatement(
    sa.update(share_link)
    .where(
        *is_live(),
        share_link.c.digest == sa.any_(sa.bindparam("digests", type_=sa.ARRAY(sa.LargeBinary))),
        sa.or_(share_link.c.max_uses.is_(None), share_link.c.use_count < share_link.c.max_uses),
    )
    .values(
        use_count=share_link.c.use_count + 1,
        digest=sa.case((_OLDER, _DIGEST), else_=share_link.c.digest),
        digest_key=sa.case((_OLDER, _DIGEST_KEY), else_=share_link.c.digest_key),
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
        raise UnavailableError("Share links can't be prefetched.")
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
