"""Finds who a credential belongs to: one statement per request, prepared once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from sqlalchemy import ColumnElement, Text, and_, bindparam, cast, func, literal, or_, select
from sqlalchemy.dialects.postgresql import BYTEA

from models.core.access.rules import PrincipalType
from models.people.api_keys import api_key
from models.people.browser_sessions import BROWSER_SESSION, live_session_of_user
from models.people.users import app_user
from models.people.workspaces import workspace, workspace_member
from runtime.database import UnitOfWork
from runtime.postgresql.statements import LeadingStatement, Prefetch, PreparedStatement


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


def _acting(kind: PrincipalType) -> ColumnElement[str]:
    """Tells the transaction who acts: its events say so in the log of the workspace."""
    name = literal(f"{kind.value}:").concat(cast(app_user.c.id, Text))
    return func.set_config("workspace.actor", name, True).label("acting")


_KEY = PreparedStatement(
    select(
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
        and_(
            workspace_member.c.workspace_id == api_key.c.workspace_id,
            workspace_member.c.user_id == api_key.c.bound_user_id,
        ),
    )
    .where(
        api_key.c.digest == bindparam("digest", type_=BYTEA),
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

_PERSON = select(
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
        and_(
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
        app_user.c.issuer == bindparam("issuer"),
        app_user.c.subject == bindparam("subject"),
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
        select(
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
            or_(columns.expires_at.is_(None), columns.expires_at > work.now),
            workspace.c.deleted_at.is_(None),
        )
        .order_by(columns.last_used_at.desc().nulls_last(), columns.id)
        .limit(limit)
    )
    return await work.rows(statement, of=OutdatedKey)
