"""Reading API keys."""

from collections.abc import Sequence

from sqlalchemy import select

from models.access.placement import Placement
from models.access.rules import Actor
from models.api_keys.shapes import ApiKeyBody
from models.api_keys.tables import api_key
from models.base import Id
from runtime.database import UnitOfWork

_SHOWN = [column for column in api_key.c if column.name != "digest"]

MAX_KEYS = 500
"""A workspace holds at most this many keys that are not revoked (promise I12)."""


async def list_keys(work: UnitOfWork, actor: Actor) -> list[ApiKeyBody]:
    """The newest keys of the workspace, revoked ones included, without any secret."""
    rows = await work.rows(
        select(*_SHOWN)
        .where(api_key.c.workspace_id == actor.workspace_id)
        .order_by(api_key.c.created_at.desc(), api_key.c.id.desc())
        .limit(2 * MAX_KEYS)
    )
    return [ApiKeyBody.model_validate(row) for row in rows]


async def visible(
    work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id
) -> Placement | None:
    """Where the key is, if it is in one of these workspaces."""
    workspace_id = await work.scalar(
        select(api_key.c.workspace_id).where(
            api_key.c.id == resource_id, api_key.c.workspace_id.in_(workspace_ids)
        )
    )
    return None if workspace_id is None else Placement(workspace_id)
