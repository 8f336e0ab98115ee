"""Workspace API keys: secrets that carry scopes, issued, used and revoked.

See interface.md#api-keys.
"""

import re
import secrets
import zlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Scope
from models.core.base import Deleted, Id, Input, Label, Moment, Nullable, Shape
from models.core.pagination import Page, PageRequest
from models.core.repository import Bound
from models.core.secret_keys import is_older_key
from runtime.clock import truncate
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, table_of

PREFIX = "svc_sk_"
SHOWN = 14
"""Leading characters of a key that listings show."""

MAX_LIFETIME = timedelta(days=3660)

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM = 43
_CHECKSUM = 6
_SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM + _CHECKSUM}}}")


def new_token() -> str:
    """A fresh secret of 256 bits with its checksum."""
    body = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """True when a text can be a key at all: typos are answered without a database."""
    if not _SHAPE.fullmatch(token):
        return False
    return _checksum(token[:-_CHECKSUM]) == token[-_CHECKSUM:]


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """A key expires in the future, at most ten years ahead; raises ValidationError."""
    if expires_at is None:
        return
    if expires_at <= now:
        raise ValidationError.at("expiresAt", "Must be in the future.")
    if expires_at > now + MAX_LIFETIME:
        raise ValidationError.at("expiresAt", "Must be within ten years.")


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode())
    digits = ""
    for _ in range(_CHECKSUM):
        value, digit = divmod(value, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


class ApiKey(SQLModel, table=True):
    """A key acts as `bound_user_id` until it is revoked or expires.

    `digest_key` is the id of the secret key that its digest was made with.
    """

    __tablename__ = "api_key"
    __table_args__ = (
        sa.UniqueConstraint("digest"),
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["bound_user_id"], ["app_user.id"]),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        sa.Index("ix_api_key_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = TableField(primary_key=True)
    workspace_id: Id
    name: str
    prefix: str
    digest: bytes = TableField(sa_type=BYTEA)
    digest_key: bytes | None = TableField(default=None, sa_type=BYTEA)
    scopes: list[str] = TableField(sa_type=ARRAY(sa.Text))
    bound_user_id: Id
    created_by_user_id: Id
    last_used_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    expires_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    revoked_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)


api_key = table_of(ApiKey)

KEYS = Bound(
    api_key,
    500,
    "API keys",
    conditions=(api_key.c.revoked_at.is_(None),),
    remedy="Revoke some first.",
)


class ApiKeyBody(Shape):
    """A key as listings show it."""

    id: Id
    workspace_id: Id
    name: str
    prefix: str
    scopes: list[Scope]
    bound_user_id: Nullable[Id]
    created_by_user_id: Nullable[Id]
    last_used_at: Nullable[Moment]
    expires_at: Nullable[Moment]
    revoked_at: Nullable[Moment]
    created_at: Moment
    updated_at: Moment


class IssuedApiKey(Shape):
    """The answer to a creation: the only place the secret is ever shown."""

    api_key: ApiKeyBody
    token: str


def _written_out(value: object) -> object:
    """Numbers and numeric strings are no dates, though a lenient reader takes them for some."""
    if isinstance(value, str) and "T" not in value.upper():
        raise ValueError("Enter a time such as 2030-01-31T12:00:00.000Z.")
    return value


Expiry = Annotated[AwareDatetime, BeforeValidator(_written_out), Field(strict=False)]


def _once_each(scopes: list[Scope]) -> list[Scope]:
    if len(set(scopes)) < len(scopes):
        raise ValueError("Each scope can be listed only once.")
    return scopes


GivenScopes = Annotated[
    list[Annotated[Scope, Field(strict=False)]],
    Field(min_length=1, max_length=len(Scope), json_schema_extra={"uniqueItems": True}),
    AfterValidator(_once_each),
]


class CreateApiKey(Input):
    """Name, scopes and expiry of a new key."""

    name: Label
    scopes: GivenScopes
    expires_at: Expiry | None = None


_SHOWN = [column for column in api_key.c if column.name not in {"digest", "digest_key"}]


async def page_of_keys(
    work: UnitOfWork, actor: Actor, page: PageRequest, *, live: bool | None = None
) -> Page[ApiKeyBody]:
    """All keys, newest first and without any secret; or the ones that work, or no longer do."""
    columns = api_key.c
    works = sa.and_(
        columns.revoked_at.is_(None),
        sa.or_(columns.expires_at.is_(None), columns.expires_at > work.now),
    )
    wanted = sa.true() if live is None else works if live else sa.not_(works)
    own = keys_of(actor.workspace_id).where(wanted)
    shown = await page.descending(work, own, columns.created_at, columns.id, of=ApiKey)
    return Page([ApiKeyBody.model_validate(row) for row in shown.items], shown.cursor)


def keys_of(workspace_id: Id) -> sa.Select[Any]:
    """Every key of a workspace without its secret, also revoked and expired ones."""
    return sa.select(*_SHOWN).where(api_key.c.workspace_id == workspace_id)


async def key_names(work: UnitOfWork, actor: Actor, key_ids: Collection[Id]) -> Mapping[Id, str]:
    """The names of keys of the workspace."""
    these = sa.select(api_key.c.id, api_key.c.name).where(
        api_key.c.workspace_id == actor.workspace_id, api_key.c.id.in_(key_ids)
    )
    return {row.id: row.name for row in await work.rows(these)}


async def opens(work: UnitOfWork, keys: KeyRing, token: str, workspace_id: Id) -> bool:
    """True when a token belongs to a key of the workspace that is not revoked."""
    live = sa.select(api_key.c.id).where(
        api_key.c.digest.in_(keys.digests(token.encode())),
        api_key.c.workspace_id == workspace_id,
        api_key.c.revoked_at.is_(None),
    )
    return await work.scalar(live) is not None


def user_of_key(key_id: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """The user as whom the key of a column of the enclosing statement acts."""
    return sa.select(api_key.c.bound_user_id).where(api_key.c.id == key_id).scalar_subquery()


visible = WorkspaceOf(api_key.c.id)
"""The workspace of a key, if it is among the workspaces that are asked for."""


async def create_key(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: CreateApiKey
) -> IssuedApiKey:
    """A key bound to the caller, with no scope the caller lacks (interface.md#api-keys).

    Raises DeniedError for such a scope, ValidationError for an expiry that is not in the future,
    ConflictError when the workspace has too many keys.
    """
    beyond = [scope for scope in body.scopes if scope not in actor.scopes]
    if beyond:
        raise DeniedError(f"You can't grant scopes that you don't have: {', '.join(beyond)}.")
    check_expiry(body.expires_at, work.now)
    async with KEYS.place(work, actor.workspace_id):
        return await _issue(
            work,
            keys,
            workspace_id=actor.workspace_id,
            user_id=actor.user_id,
            name=body.name,
            scopes=body.scopes,
            expires_at=None if body.expires_at is None else truncate(body.expires_at),
        )


async def issue_key(
    work: UnitOfWork,
    keys: KeyRing,
    *,
    workspace_id: Id,
    user_id: Id,
    name: str,
    scopes: Iterable[Scope] = tuple(Scope),
) -> str:
    """The token of a new key that acts as `user_id`, by default with every scope."""
    issued = await _issue(
        work,
        keys,
        workspace_id=workspace_id,
        user_id=user_id,
        name=name,
        scopes=scopes,
        expires_at=None,
    )
    return issued.token


async def revoke_key(work: UnitOfWork, actor: Actor, key_id: Id) -> Deleted:
    """Stop a key for ever; once revoked it stays as it is. Raises NotFoundError."""
    revoked = await work.execute(
        sa.update(api_key)
        .where(api_key.c.id == key_id, api_key.c.workspace_id == actor.workspace_id)
        .values(
            revoked_at=sa.func.coalesce(api_key.c.revoked_at, work.now),
            updated_at=sa.func.coalesce(api_key.c.revoked_at, work.now),
        )
    )
    if revoked.rowcount == 0:
        raise NotFoundError("API key")
    return Deleted(id=key_id)


async def mark_keys_used(work: UnitOfWork, moments: Mapping[Id, datetime]) -> None:
    """Set `lastUsedAt`, never backwards."""
    for key_id, moment in moments.items():
        older = sa.or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < moment)
        await work.execute(
            sa.update(api_key).where(api_key.c.id == key_id, older).values(last_used_at=moment)
        )


async def renew_digest(work: UnitOfWork, keys: KeyRing, token: str) -> None:
    """Keep the digest of a key under the current secret key, as its use does."""
    digests = keys.digests(token.encode())
    found = await work.first(sa.select(api_key.c.id).where(api_key.c.digest.in_(digests)))
    if found is not None:
        await move_digests(work, {found.id: (digests[0], keys.current_id)})


async def move_digests(work: UnitOfWork, digests: Mapping[Id, tuple[bytes, bytes]]) -> None:
    """Keep the digests of API keys under newer secret keys: each with the id of that key."""
    for key_id, (digest, digest_key) in digests.items():
        older = is_older_key(api_key.c.digest_key, sa.literal(digest_key, BYTEA))
        await work.execute(
            sa.update(api_key)
            .where(api_key.c.id == key_id, older)
            .values(digest=digest, digest_key=digest_key)
        )


async def _issue(
    work: UnitOfWork,
    keys: KeyRing,
    *,
    workspace_id: Id,
    user_id: Id,
    name: str,
    scopes: Iterable[Scope],
    expires_at: datetime | None,
) -> IssuedApiKey:
    token = new_token()
    values = {
        "id": new_id(),
        "workspace_id": workspace_id,
        "name": name,
        "prefix": token[:SHOWN],
        "scopes": [scope.value for scope in dict.fromkeys(scopes)],
        "bound_user_id": user_id,
        "created_by_user_id": user_id,
        "last_used_at": None,
        "expires_at": expires_at,
        "revoked_at": None,
        "created_at": work.now,
        "updated_at": work.now,
    }
    digest = {"digest": keys.digest(token.encode()), "digest_key": keys.current_id}
    await work.execute(sa.insert(api_key).values(**digest, **values))
    return IssuedApiKey(api_key=ApiKeyBody.model_validate(values), token=token)
