"""Checks of the automation and the version that a stored filter of runs names."""

from sqlalchemy import select

from models.automation.automation_runs.run_queries import WorkspaceRunQuery
from models.automation.automations.joins import AUTOMATION, VERSION, open_automations
from models.core.access.rules import Actor, Level
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError


async def check_filter(
    work: UnitOfWork, actor: Actor, query: WorkspaceRunQuery, path: str = "query"
) -> None:
    """Raises NotFoundError for an automation that the actor does not see, or no version of it.

    `path` leads to the filter in the body. Raises ValidationError for a version alone.
    """
    automation_id, version_id = query.automation_id, query.automation_version_id
    if automation_id is not None:
        if not await sees_automation(work, actor, automation_id):
            raise NotFoundError("automation")
    elif version_id is not None:
        raise ValidationError.at(f"{path}.automationId", "Name the automation of the version, too.")
    if version_id is not None:
        own = select(VERSION.id).where(
            VERSION.automation_id == automation_id, VERSION.id == version_id
        )
        if await work.scalar(own) is None:
            raise NotFoundError("version")


async def sees_automation(work: UnitOfWork, actor: Actor, automation_id: Id) -> bool:
    """True when there is an automation that the actor sees."""
    seen = open_automations(actor, Level.VIEW).where(AUTOMATION.id == automation_id)
    return await work.scalar(seen) is not None
