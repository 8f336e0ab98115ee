"""Commands on versions: edit a draft, publish a version, discard or restore one.

All of them hold the lock of the automation's row. So version numbers have no gaps, and at most one
draft is open. The commands of automations call them.

See interface.md#versions.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.automation.automations import graphs
from models.automation.automations.queries import visible
from models.automation.automations.rules.graph.compiler import Compiled
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.schedules import require_future
from models.automation.automations.shapes import VersionStatus
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import live_item_of
from models.core.access.rules import Actor, Level, level_on
from models.core.base import Id, JsonObject
from models.core.keys import share_field_keys
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, PlatformError, ValidationError
from runtime.ids import new_id


@dataclass(slots=True)
class LockedAutomation:
    """An automation whose versions no one else can change until the transaction ends."""

    id: Id
    item_id: Id
    draft_version_id: Id | None
    published_version_id: Id | None
    last_version: int
    updated_at: datetime | None = None
    """None while the automation is being created."""

    def changed_at(self, now: datetime) -> datetime:
        """`now`, or just after the last change: every change gets its own `updatedAt`."""
        if self.updated_at is None:
            return now
        return max(now, self.updated_at + timedelta(milliseconds=1))

    def expect_unchanged(self, updated_at: datetime | None) -> None:
        """Raises ConflictError if the automation has changed since the given `updatedAt`."""
        if updated_at not in {None, self.updated_at}:
            raise ConflictError("The automation changed since you read it. Read it again.")

    def expect_draft(self, version_id: Id | None) -> None:
        """Raises ConflictError if the open draft is another than the given one."""
        if version_id is not None and version_id != self.draft_version_id:
            raise ConflictError(
                "The draft changed since you read it. Read the automation again and repeat your"
                " change on its current draft."
            )


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a version: its trigger and its graph."""

    trigger_config: JsonObject
    graph: Graph

    @property
    def trigger(self) -> str:
        return str(self.trigger_config["kind"])


async def lock(work: UnitOfWork, actor: Actor, automation_id: Id) -> LockedAutomation:
    """The automation, its row locked. Raises NotFoundError."""
    await share_field_keys(work, actor.workspace_id)
    row = await work.one(
        sa.select(
            automation.c.id,
            automation.c.item_id,
            automation.c.draft_version_id,
            automation.c.published_version_id,
            automation.c.last_version,
            automation.c.updated_at,
        )
        .join(*live_item_of(automation))
        .where(
            automation.c.workspace_id == actor.workspace_id,
            automation.c.id == automation_id,
        )
        .with_for_update(of=automation),
        "automation",
    )
    return LockedAutomation(*tuple(row))


async def content_of(work: UnitOfWork, actor: Actor, automation_id: Id, version_id: Id) -> Content:
    """The content of a version of this automation. Raises as `foreign_version` for any other."""
    row = await work.first(
        sa.select(automation_graph.c.trigger_config, automation_graph.c.graph)
        .join(
            automation_version,
            (automation_version.c.automation_id == automation_graph.c.automation_id)
            & (automation_version.c.checksum == automation_graph.c.checksum),
        )
        .where(
            automation_version.c.automation_id == automation_id,
            automation_version.c.id == version_id,
        )
    )
    if row is None:
        raise await foreign_version(work, actor, version_id)
    return Content(row.trigger_config, Graph.model_validate(row.graph))


async def write_draft(
    work: UnitOfWork, actor: Actor, owner: LockedAutomation, content: Content
) -> None:
    """Edit the open draft in place, or open one."""
    compiled = await _compiled(work, actor, owner, content)
    checksum = await _store(work, actor, owner, content, compiled)
    if owner.draft_version_id is None:
        await _open_draft(work, actor, owner, content, checksum, restored_from=None)
        return
    await work.execute(
        sa.update(automation_version)
        .where(automation_version.c.id == owner.draft_version_id)
        .values(checksum=checksum, trigger=content.trigger, **_changed(work, actor))
    )
    await _point(work, owner)


def _changed(work: UnitOfWork, actor: Actor) -> JsonObject:
    """The columns that say who wrote a version, and when."""
    return {"changed_by_user_id": actor.user_id, "changed_at": work.now}


async def restore(work: UnitOfWork, actor: Actor, owner: LockedAutomation, version_id: Id) -> None:
    """Open a draft with the content of an earlier version, and archive the open draft.

    Raises as `foreign_version`, and ValidationError when the version no longer compiles.

    See interface.md#versions.
    """
    content = await content_of(work, actor, owner.id, version_id)
    compiled = await _require_compiled(work, actor, owner, content)
    checksum = await _store(work, actor, owner, content, compiled)
    if owner.draft_version_id is not None:
        await _set_status(work, owner.draft_version_id, VersionStatus.ARCHIVED)
    await _open_draft(work, actor, owner, content, checksum, restored_from=version_id)


async def publish(
    work: UnitOfWork, actor: Actor, owner: LockedAutomation, version_id: Id, note: str | None
) -> None:
    """Make a version the published one. Open runs keep the version they were accepted with.

    Raises as `foreign_version`, and ValidationError when the version has reference issues.
    """
    content = await content_of(work, actor, owner.id, version_id)
    compiled = await _require_compiled(work, actor, owner, content)
    require_future(content.trigger_config, work.now)
    await graphs.keep_plan(work, owner.id, _checksum_of(version_id), compiled)
    if owner.published_version_id == version_id:
        return
    if owner.published_version_id is not None:
        await _set_status(work, owner.published_version_id, VersionStatus.ARCHIVED)
    values: JsonObject = {"status": VersionStatus.PUBLISHED, "published_at": work.now}
    if note is not None:
        values["note"] = note
    await work.execute(
        sa.update(automation_version).where(automation_version.c.id == version_id).values(values)
    )
    owner.published_version_id = version_id
    if owner.draft_version_id == version_id:
        owner.draft_version_id = None
    await _point(work, owner)


async def discard_draft(work: UnitOfWork, owner: LockedAutomation) -> None:
    """Archive the open draft. Raises ConflictError when there is none.

    Where nothing is published, the automation has no version then until another one is drafted.
    """
    if owner.draft_version_id is None:
        raise ConflictError("No draft to discard.")
    await _set_status(work, owner.draft_version_id, VersionStatus.ARCHIVED)
    owner.draft_version_id = None
    await _point(work, owner)


async def foreign_version(
    work: UnitOfWork, actor: Actor, version_id: Id, path: str = "versionId"
) -> PlatformError:
    """The error for a version that is not of this automation, at `path`.

    It is a ValidationError when the actor sees the automation whose version it is, and a
    NotFoundError otherwise: what no one has and what the actor may not see are the same.
    """
    owner_id = await work.scalar(
        sa.select(automation_version.c.automation_id).where(
            automation_version.c.workspace_id == actor.workspace_id,
            automation_version.c.id == version_id,
        )
    )
    found = owner_id and await visible(work, [actor.workspace_id], owner_id, actor.user_id)
    if found is None or level_on(found, actor.role) < Level.VIEW:
        return NotFoundError("version")
    return ValidationError.at(path, "The version belongs to another automation.")


def issues_error(compilation: Compiled) -> ValidationError:
    """The error for an automation that does not compile, with one detail per issue."""
    issues = compilation.issues
    first = issues[0].message.removesuffix(".")
    return ValidationError(
        f"The automation has {len(issues)} issue(s): {first}. See details.", compilation.details
    )


async def _compiled(
    work: UnitOfWork, actor: Actor, owner: LockedAutomation, content: Content
) -> Compiled:
    return await graphs.compile_in(
        work, actor.workspace_id, owner.id, content.trigger_config, content.graph
    )


async def _require_compiled(
    work: UnitOfWork, actor: Actor, owner: LockedAutomation, content: Content
) -> Compiled:
    compiled = await _compiled(work, actor, owner, content)
    if compiled.issues:
        raise issues_error(compiled)
    return compiled


async def _store(
    work: UnitOfWork, actor: Actor, owner: LockedAutomation, content: Content, compiled: Compiled
) -> str:
    return await graphs.store(
        work, actor.workspace_id, owner.id, content.trigger_config, content.graph, compiled
    )


def _checksum_of(version_id: Id) -> sa.ScalarSelect[str]:
    found = sa.select(automation_version.c.checksum).where(automation_version.c.id == version_id)
    return found.scalar_subquery()


async def _open_draft(
    work: UnitOfWork,
    actor: Actor,
    owner: LockedAutomation,
    content: Content,
    checksum: str,
    *,
    restored_from: Id | None,
) -> None:
    owner.last_version += 1
    owner.draft_version_id = new_id()
    await work.execute(
        sa.insert(automation_version).values(
            id=owner.draft_version_id,
            workspace_id=actor.workspace_id,
            automation_id=owner.id,
            version=owner.last_version,
            status=VersionStatus.DRAFT,
            trigger=content.trigger,
            checksum=checksum,
            created_by_user_id=actor.user_id,
            created_at=work.now,
            restored_from_version_id=restored_from,
            **_changed(work, actor),
        )
    )
    await _point(work, owner)


async def _point(work: UnitOfWork, owner: LockedAutomation, **others: object) -> None:
    await work.execute(
        sa.update(automation)
        .where(automation.c.id == owner.id)
        .values(
            draft_version_id=owner.draft_version_id,
            published_version_id=owner.published_version_id,
            last_version=owner.last_version,
            updated_at=owner.changed_at(work.now),
            **others,
        )
    )


async def _set_status(work: UnitOfWork, version_id: Id, status: VersionStatus) -> None:
    await work.execute(
        sa.update(automation_version)
        .where(automation_version.c.id == version_id)
        .values(status=status)
    )


async def rewrite(
    work: UnitOfWork,
    actor: Actor,
    owner: LockedAutomation,
    version_id: Id,
    content: Content,
    note: str,
) -> None:
    """Replace the content of a version by one that executes alike, such as with a renamed field.

    The open draft is edited in place. The published version is archived, and a new one with the
    note is published, even if another reference of it is broken. `rewrites` counts both.
    """
    checksum = await work.scalar(
        sa.select(automation_version.c.checksum).where(automation_version.c.id == version_id)
    )
    parts = (checksum, content.trigger_config, content.graph.to_json())
    new_checksum = await graphs.store_like(work, actor.workspace_id, owner.id, *parts)
    if version_id == owner.draft_version_id:
        await work.execute(
            sa.update(automation_version)
            .where(automation_version.c.id == version_id)
            .values(checksum=new_checksum, **_changed(work, actor))
        )
    else:
        await _set_status(work, version_id, VersionStatus.ARCHIVED)
        owner.last_version += 1
        owner.published_version_id = new_id()
        await work.execute(
            sa.insert(automation_version).values(
                id=owner.published_version_id,
                workspace_id=actor.workspace_id,
                automation_id=owner.id,
                version=owner.last_version,
                status=VersionStatus.PUBLISHED,
                trigger=content.trigger,
                checksum=new_checksum,
                note=note,
                created_by_user_id=actor.user_id,
                created_at=work.now,
                published_at=work.now,
            )
        )
    await _point(work, owner, rewrites=automation.c.rewrites + 1)
