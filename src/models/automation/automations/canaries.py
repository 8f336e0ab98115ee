"""The canary of an automation: published versions that some of its runs try."""

from collections.abc import Collection, Mapping
from typing import Protocol

from sqlalchemy import null, select, update

from models.automation.automations.tables import automation, automation_version
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


class Release(Protocol):
    """The published version of an automation, and its canary."""

    id: Id
    published_version_id: Id | None
    canary: JsonObject | None


async def release_of(work: UnitOfWork, actor: Actor, automation_id: Id) -> Release:
    """The release of an automation. Raises NotFoundError."""
    row = await work.first(
        select(automation.c.id, automation.c.published_version_id, automation.c.canary).where(
            automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id
        ),
        of=Release,
    )
    if row is None:
        raise NotFoundError("automation")
    return row


async def version_numbers(
    work: UnitOfWork, automation_id: Id, version_ids: Collection[Id]
) -> Mapping[Id, int]:
    """The numbers of versions of an automation, by their ids."""
    rows = await work.rows(
        select(automation_version.c.id, automation_version.c.version).where(
            automation_version.c.automation_id == automation_id,
            automation_version.c.id.in_(version_ids),
        )
    )
    return {row.id: row.version for row in rows}


async def is_automation(work: UnitOfWork, automation_id: Id) -> bool:
    """True when there is an automation of this id, in any workspace."""
    this = select(automation.c.id).where(automation.c.id == automation_id)
    return await work.scalar(this) is not None


async def published_among(
    work: UnitOfWork, automation_id: Id, version_ids: Collection[Id]
) -> set[Id]:
    """The versions among these that were published at some time."""
    rows = await work.rows(
        select(automation_version.c.id).where(
            automation_version.c.automation_id == automation_id,
            automation_version.c.published_at.is_not(None),
            automation_version.c.id.in_(version_ids),
        )
    )
    return {row.id for row in rows}


async def set_canary(work: UnitOfWork, automation_id: Id, canary: JsonObject) -> None:
    """Have runs of an automation try versions."""
    this = update(automation).where(automation.c.id == automation_id)
    await work.execute(this.values(canary=canary))


async def remove_canary(work: UnitOfWork, experiment_id: Id) -> None:
    """Let no run try the versions of an experiment any more."""
    theirs = automation.c.canary["experimentId"].as_string() == str(experiment_id)
    gone = update(automation).where(automation.c.canary.is_not(None), theirs)
    await work.execute(gone.values(canary=null()))
