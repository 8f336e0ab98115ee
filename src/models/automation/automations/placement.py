"""Handlers for the trash, restoring and deletion of items and workspaces (`registrations`)."""

from collections.abc import Sequence

from models.automation.automations.schedules import announce
from models.automation.automations.subscriptions import subscribe_all
from models.automation.automations.tables import automation
from models.core.base import Id
from runtime.database import UnitOfWork


async def automations_placed(
    work: UnitOfWork, workspace_id: Id, automation_ids: Sequence[Id]
) -> None:
    """Update schedules and subscriptions after items were trashed, archived or restored."""
    await announce(work, automation.c.id.in_(automation_ids))
    await subscribe_all(work, workspace_id, automation_ids)


async def automations_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Stop the schedules of a deleted workspace."""
    await announce(work, automation.c.workspace_id == workspace_id)
