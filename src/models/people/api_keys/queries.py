"""Reading API keys."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, and_, not_, or_, select, true

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import Page, PageRequest
from models.people.api_keys.shapes import ApiKeyBody
from models.people.api_keys.tables import ApiKey, api_key
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

_SHOWN = [column for column in api_key.c if column.name not in {"digest", "digest_key"}]

MAX_KEYS = 500
"""A workspace holds at most this many keys that are not revoked (promise I12)."""


async def page_of_keys(
    work: UnitOfWork, actor: Actor, page: PageRequest, *, live: bool | None = None
) -> Page[ApiKeyBody]:
    """All keys, newest first and without any secret; or the ones that work, or no longer do."""
    columns = api_key.c
    works = and_(
        columns.revoked_at.is_(None),
        or_(columns.expires_at.is_(None), columns.expires_at > work.now),
    )
    wanted = true() if live is None else works if live else not_(works)
    own = select(*_SHOWN).where(columns.workspace_id == actor.workspace_id, wanted)
    shown = await page.descending(work, own, columns.created_at, columns.id, of=ApiKey)
    return Page([ApiKeyBody.model_validate(row) for row in shown.items], shown.cursor)


async def key_names(work: UnitOfWork, actor: Actor, key_ids: Collection[Id]) -> Mapping[Id, str]:
    """The names of keys of the workspace."""
    these = select(api_key.c.id, api_key.c.name).where(
        api_key.c.workspace_id == actor.workspace_id, api_key.c.id.in_(key_ids)
    )
    return {row.id: row.name for row in await work.rows(these)}


async def opens(work: UnitOfWork, keys: KeyRing, token: str, workspace_id: Id) -> bool:
    """True when a token belongs to a key of the workspace that is not revoked."""
    live = select(api_key.c.id).where(
        api_key.c.digest.in_(keys.digests(token.encode())),
        api_key.c.workspace_id == workspace_id,
        api_key.c.revoked_at.is_(None),
    )
    return await work.scalar(live) is not None


def user_of_key(key_id: ColumnElement[Any]) -> ScalarSelect[Any]:
    """The user as whom the key of a column of the enclosing statement acts."""
    return select(api_key.c.bound_user_id).where(api_key.c.id == key_id).scalar_subquery()


visible = WorkspaceOf(api_key.c.id)
"""The workspace of a key, if it is among the workspaces that are asked for."""
