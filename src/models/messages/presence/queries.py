"""The users who are connected."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import func, select

from models.core.base import Id
from models.messages.presence.commands import FORGOTTEN_AFTER
from models.messages.presence.tables import Presence, presence
from runtime.database import UnitOfWork


async def present_in(work: UnitOfWork, workspace_ids: Collection[Id]) -> Mapping[Id, frozenset[Id]]:
    """The users who are connected to each of these workspaces."""
    rows = await work.rows(
        select(presence.c.workspace_id, presence.c.user_id)
        .distinct()
        .where(
            presence.c.workspace_id.in_(workspace_ids),
            presence.c.seen_at > func.clock_timestamp() - FORGOTTEN_AFTER,
        ),
        of=Presence,
    )
    found: defaultdict[Id, set[Id]] = defaultdict(set)
    for row in rows:
        found[row.workspace_id].add(row.user_id)
    return {id_: frozenset(found[id_]) for id_ in workspace_ids}
