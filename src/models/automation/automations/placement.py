"""What happens to automations when their items or their workspace go or come back."""

from collections.abc import Sequence

from models.automation.automations.schedules import announce
from models.automation.automations.subscriptions import subscribe_all
from models.automation.automations.tables import automation
from models.core.base import Id
from runtime.database import UnitOfWork


async def automations_placed(
    work: UnitOfWork, workspace_id: Id, automation_ids: Sequence[Id]
) -> None:
    """Let schedules and subscriptions stop with items that went, and go on with those back."""
    await announce(work, automation.c.id.in_(automation_ids))
    await subscribe_all(work, workspace_id, automation_ids)


async def automations_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Let the schedules of a deleted workspace stop."""
    await announce(work, automation.c.workspace_id == workspace_id)
