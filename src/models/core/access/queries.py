"""Finding the workspace of a resource that stands at no item."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from models.core.access.rules import Placement
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.postgresql.statements import Prefetch, PreparedStatement


class WorkspaceOf:
    """Finds the workspace of a resource, which is named by a column of a table of workspaces."""

    def __init__(self, resource_id: sa.Column[Any]) -> None:
        workspace_id = resource_id.table.c.workspace_id
        self._statement = PreparedStatement(
            sa.select(workspace_id).where(
                resource_id == sa.bindparam("id", type_=sa.Uuid),
                workspace_id == sa.any_(sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid))),
            )
        )

    def prefetch(self, resource_id: Id) -> Prefetch:
        """The statement of a call, for a caller whose key says in which workspace."""
        return Prefetch(self._statement, {"id": resource_id})

    async def __call__(
        self, work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id, _user_id: Id
    ) -> Placement | None:
        """The placement, or None when it is in none of these workspaces."""
        parameters = {"id": resource_id, "workspace_ids": list(workspace_ids)}
        row = await self._statement.first(work, parameters)
        return None if row is None else Placement(row.workspace_id)
