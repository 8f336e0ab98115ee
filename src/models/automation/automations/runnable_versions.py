"""The version that a run executes, whether it can be run, and the canary beside it.

Whatever accepts a run finds the version here first: commands, triggers, calls, webhooks.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automations import graphs
from models.automation.automations.queries import read_graph
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.automation.automations.versions import foreign_version, issues_error
from models.content.items.joins import ITEM, live_item_of
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.people.workspaces import live_workspace_of
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, RunError, ValidationError
from runtime.postgresql.statements import PreparedStatement

UNPUBLISHED = "The automation has no published version. Publish its draft first."
DISABLED = "The automation is disabled. Enable it first."
NO_DRAFT = "The automation has no draft."
NO_VERSION = "The automation has no version yet. Add a graph first."


class Dormancy(StrEnum):
    """The reason why no trigger starts a run of an automation."""

    DISABLED = "disabled"
    ARCHIVED = "archived"
    NO_PUBLISHED_VERSION = "no_published_version"


class RunnableVersion(Protocol):
    """A version of an automation that has content to run."""

    automation_id: Id
    label: str
    enabled: bool
    canary: JsonObject | None
    version_id: Id
    version: int
    checksum: str
    trigger_config: JsonObject
    node_count: int
    rewrites: int
    """The number of times its automation was rewritten, when it was read."""


class _FrozenVersion(RunnableVersion, Protocol):
    plan: JsonObject | None


class _AcceptedRun(Protocol):
    """The facts of a run that say which version it was accepted with."""

    automation_id: Id
    automation_version_id: Id
    graph_checksum: str


async def published(
    work: UnitOfWork, actor: Actor, automation_id: Id, *, only_enabled: bool = True
) -> RunnableVersion:
    """The published version. Raises RunError unless there is one and the automation is enabled."""
    row = await _read(work, actor, automation_id, _PUBLISHED)
    if row is None:
        raise RunError(UNPUBLISHED)
    if only_enabled and not row.enabled:
        raise RunError(DISABLED)
    return row


async def draft(work: UnitOfWork, actor: Actor, automation_id: Id) -> RunnableVersion:
    """The open draft. Raises RunError when there is none."""
    row = await _read(work, actor, automation_id, _DRAFT)
    if row is None:
        raise RunError(NO_DRAFT)
    return row


async def frozen(work: UnitOfWork, actor: Actor, run: _AcceptedRun) -> tuple[RunnableVersion, Plan]:
    """The version that a run was accepted with, and its plan. Raises NotFoundError."""
    row = await _FROZEN.first(
        work,
        {
            "workspace_id": actor.workspace_id,
            "automation_id": run.automation_id,
            "version_id": run.automation_version_id,
            "checksum": run.graph_checksum,
        },
    )
    if row is None or row.plan is None:
        raise NotFoundError("version")
    return row, Plan.from_json(row.plan)


async def newest(work: UnitOfWork, actor: Actor, automation_id: Id) -> RunnableVersion:
    """The open draft, else the published version, enabled or not. Raises RunError for neither."""
    row = await _read(work, actor, automation_id, _NEWEST)
    if row is None:
        raise RunError(NO_VERSION)
    return row


async def named(
    work: UnitOfWork, actor: Actor, automation_id: Id, version_id: Id
) -> RunnableVersion:
    """The version of that id. Raises as `foreign_version`."""
    row = await _read(work, actor, automation_id, _NAMED, version_id)
    if row is None:
        raise await foreign_version(work, actor, version_id, "automationVersionId")
    return row


async def live(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> RunnableVersion | None:
    """The published version that a trigger may start.

    None while there is none, or the automation is disabled, archived or in the trash.
    """
    return await _LIVE.first(work, {"workspace_id": workspace_id, "automation_id": automation_id})


async def dormant(
    work: UnitOfWork, workspace_id: Id, automation_id: Id
) -> tuple[RunnableVersion, Dormancy] | tuple[None, None]:
    """The version that a trigger would start, and the reason why it may not.

    It is the published one, else the draft. None for an automation without either, in the trash,
    or whose workspace is.
    """
    row = await _DORMANT.first(work, {"workspace_id": workspace_id, "automation_id": automation_id})
    reason = None if row is None or row.version_id is None else dormancy(row)
    return (None, None) if row is None or reason is None else (row, reason)


async def blocked(work: UnitOfWork, actor: Actor, automation_id: Id) -> Dormancy | None:
    """The reason why no trigger starts an automation now. Raises NotFoundError."""
    this = {"workspace_id": actor.workspace_id, "automation_id": automation_id}
    row = await _DORMANT.first(work, this)
    if row is None:
        raise NotFoundError("automation")
    return dormancy(row)


async def numbered(
    work: UnitOfWork, actor: Actor, automation_id: Id, number: int
) -> RunnableVersion:
    """The version of that number. Raises ValidationError."""
    version_id = await work.scalar(
        sa.select(automation_version.c.id).where(
            automation_version.c.workspace_id == actor.workspace_id,
            automation_version.c.automation_id == automation_id,
            # A caller may name one that is larger than the column holds.
            automation_version.c.version == sa.literal(number, sa.BigInteger),
        )
    )
    if version_id is None:
        raise ValidationError.at("version", "The automation has no version of this number.")
    return await named(work, actor, automation_id, version_id)


class Dormant(Protocol):
    """The facts by which an automation starts no run."""

    enabled: bool
    archived: bool
    is_published: bool


class _DormantVersion(RunnableVersion, Dormant, Protocol): ...


def dormancy(row: Dormant) -> Dormancy | None:
    """The reason why an automation starts no run; None for one that may."""
    if not row.is_published:
        return Dormancy.NO_PUBLISHED_VERSION
    if not row.enabled:
        return Dormancy.DISABLED
    return Dormancy.ARCHIVED if row.archived else None


def _version(
    version_id: sa.ColumnElement[Any],
    checksum: sa.ColumnElement[Any] = automation_version.c.checksum,
) -> sa.Select[Any]:
    """Automations, each with one of its versions, whose columns are null when it is none.

    A draft changes; `checksum` says with which content it is meant.
    """
    return (
        sa.select(
            automation.c.id.label("automation_id"),
            automation.c.label,
            automation.c.enabled,
            automation.c.canary,
            automation.c.rewrites,
            automation_version.c.id.label("version_id"),
            automation_version.c.version,
            checksum.label("checksum"),
            automation_graph.c.trigger_config,
            sa.func.jsonb_array_length(automation_graph.c.graph["nodes"]).label("node_count"),
        )
        .outerjoin(
            automation_version,
            (automation_version.c.id == version_id)
            & (automation_version.c.automation_id == automation.c.id),
        )
        .outerjoin(
            automation_graph,
            (automation_graph.c.automation_id == automation_version.c.automation_id)
            & (automation_graph.c.checksum == checksum),
        )
    )


def _of_one(statement: sa.Select[Any]) -> sa.Select[Any]:
    """The statement for one automation."""
    return statement.where(
        automation.c.workspace_id == sa.bindparam("workspace_id"),
        automation.c.id == sa.bindparam("automation_id"),
    )


_OF_PUBLISHED = _version(automation.c.published_version_id)
_PUBLISHED = PreparedStatement(_of_one(_OF_PUBLISHED), RunnableVersion)
_NEWEST = PreparedStatement(
    _of_one(
        _version(sa.func.coalesce(automation.c.draft_version_id, automation.c.published_version_id))
    ),
    RunnableVersion,
)
_DRAFT = PreparedStatement(_of_one(_version(automation.c.draft_version_id)), RunnableVersion)
_FROZEN = PreparedStatement(
    _of_one(
        _version(
            sa.bindparam("version_id", type_=automation_version.c.id.type),
            sa.bindparam("checksum", type_=automation_graph.c.checksum.type),
        ).add_columns(automation_graph.c.plan)
    ),
    _FrozenVersion,
)
_NAMED = PreparedStatement(
    _of_one(_version(sa.bindparam("version_id", type_=automation_version.c.id.type))),
    RunnableVersion,
)

LIVE = (
    _OF_PUBLISHED.join(*live_item_of(automation))
    .join(*live_workspace_of(automation))
    .where(
        automation.c.enabled,
        automation.c.published_version_id.is_not(None),
        ~ITEM.archived,
    )
)
"""The versions that triggers may start, one of each automation."""
_LIVE = PreparedStatement(_of_one(LIVE), RunnableVersion)
_newest_id = sa.func.coalesce(automation.c.published_version_id, automation.c.draft_version_id)
DORMANT = (
    _version(_newest_id)
    .add_columns(
        ITEM.archived, automation.c.published_version_id.is_not(None).label("is_published")
    )
    .join(*live_item_of(automation))
    .join(*live_workspace_of(automation))
)
"""The versions that triggers would start, with what `dormancy` asks for."""
_DORMANT = PreparedStatement(_of_one(DORMANT), _DormantVersion)


_this = automation.c.id == sa.bindparam("automation_id", type_=automation.c.id.type)
_is_rewritten = automation.c.rewrites != sa.bindparam("rewrites", type_=automation.c.rewrites.type)
# The lock is the one that the foreign key of the run takes. A rename with all that names the field
# holds the row alone: this waits for its commit, and then finds that the version is another one.
AS_READ = (
    sa.select(sa.literal(True).label("as_read"))
    .where(_this, ~_is_rewritten)
    .with_for_update(read=True, key_share=True)
    .cte("as_read")
)
"""One row if the automation was not rewritten since the version was read."""
REWRITTEN = sa.select(sa.literal(True).label("rewritten")).where(_this, _is_rewritten)
"""One row if it was."""


async def _read(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    which: PreparedStatement[RunnableVersion],
    version_id: Id | None = None,
) -> RunnableVersion | None:
    """The version; None when the automation has no such version. Raises NotFoundError."""
    parameters = {"workspace_id": actor.workspace_id, "automation_id": automation_id}
    if version_id is not None:
        parameters["version_id"] = version_id
    row = await which.first(work, parameters)
    if row is None:
        raise NotFoundError("automation")
    found: Id | None = row.version_id
    return None if found is None else row


async def compiled(
    work: UnitOfWork, actor: Actor, automation_id: Id, version: RunnableVersion
) -> tuple[Plan, JsonObject]:
    """The plan and content of a version that compiles today. Raises ValidationError."""
    content: JsonObject = await work.scalar(
        sa.select(automation_graph.c.graph).where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == version.checksum,
        )
    )
    graph = read_graph(content)
    compilation = await graphs.compile_in(
        work, actor.workspace_id, automation_id, version.trigger_config, graph
    )
    if compilation.plan is None or compilation.issues:
        raise issues_error(compilation)
    await graphs.keep_plan(work, automation_id, version.checksum, compilation)
    return compilation.plan, content


class Release(Protocol):
    """The published version of an automation, and its canary."""

    id: Id
    published_version_id: Id | None
    canary: JsonObject | None


async def release_of(work: UnitOfWork, actor: Actor, automation_id: Id) -> Release:
    """The release of an automation. Raises NotFoundError."""
    return await work.one(
        sa.select(automation.c.id, automation.c.published_version_id, automation.c.canary).where(
            automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id
        ),
        "automation",
        of=Release,
    )


async def version_numbers(
    work: UnitOfWork, automation_id: Id, version_ids: Collection[Id]
) -> Mapping[Id, int]:
    """The numbers of versions of an automation, by their ids."""
    rows = await work.rows(
        sa.select(automation_version.c.id, automation_version.c.version).where(
            automation_version.c.automation_id == automation_id,
            automation_version.c.id.in_(version_ids),
        )
    )
    return {row.id: row.version for row in rows}


async def is_automation(work: UnitOfWork, automation_id: Id) -> bool:
    """True when there is an automation of this id, in any workspace."""
    this = sa.select(automation.c.id).where(automation.c.id == automation_id)
    return await work.scalar(this) is not None


async def published_among(
    work: UnitOfWork, automation_id: Id, version_ids: Collection[Id]
) -> set[Id]:
    """The versions among these that were published at some time."""
    rows = await work.rows(
        sa.select(automation_version.c.id).where(
            automation_version.c.automation_id == automation_id,
            automation_version.c.published_at.is_not(None),
            automation_version.c.id.in_(version_ids),
        )
    )
    return {row.id for row in rows}


async def set_canary(work: UnitOfWork, automation_id: Id, canary: JsonObject) -> None:
    """Have runs of an automation try versions."""
    this = sa.update(automation).where(automation.c.id == automation_id)
    await work.execute(this.values(canary=canary))


async def remove_canary(work: UnitOfWork, experiment_id: Id) -> None:
    """Let no run try the versions of an experiment any more."""
    theirs = automation.c.canary["experimentId"].as_string() == str(experiment_id)
    gone = sa.update(automation).where(automation.c.canary.is_not(None), theirs)
    await work.execute(gone.values(canary=sa.null()))
