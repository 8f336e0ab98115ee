"""Reading automations and versions, and the joins for resources whose rows run one of them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from models.automation.automations import shapes
from models.automation.automations.graphs import compile_in
from models.automation.automations.rules.graph.compiler import ReferenceIssue
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.bindings import written
from models.automation.automations.rules.triggers.configs import read_trigger, trigger_problems
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.automation.automations.tables import (
    Automation,
    automation,
    automation_graph,
    automation_version,
    webhook_secret_place,
)
from models.content.items.joins import live_item_of
from models.content.items.queries import closed_items, placed, placement_of
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.http_requests import hidden
from models.core.pagination import PageRequest
from models.core.schedules.timetables import schedule_notes
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

FindLastRun = Callable[[sa.ColumnElement[Any]], sa.ColumnElement[Any]]
"""Takes the column of an automation's id; gives the time at which it was last triggered."""

_FIND: list[FindLastRun] = []


def find_last_run_with(find: FindLastRun) -> None:
    """Ask `find` for last runs; registering it again changes nothing.

    The resource of runs knows the last run of an automation, and says so through this;
    `models.registrations` lists it.
    """
    if find not in _FIND:
        _FIND.append(find)


def last_triggered_at(automation_id: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The column of the time at which an automation was last triggered; tests do not count."""
    (find,) = _FIND
    return find(automation_id)


published = automation_version.alias("published")
current = automation_version.alias("current")

_GRAPH: TypeAdapter[Graph] = TypeAdapter(Graph)

visible = placement_of(automation)
"""The placement of an automation: `await visible(work, workspace_ids, automation_id, user_id)`."""


async def detail(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id
) -> shapes.AutomationDetail:
    """One automation with the graph of its current version and the issues of that graph.

    Raises NotFoundError.
    """
    row = await work.one(
        _summaries(actor.workspace_id)
        .add_columns(
            automation_graph.c.trigger_config,
            automation_graph.c.graph,
            automation.c.webhook_token,
            automation.c.sealed_webhook_secret,
        )
        .outerjoin(automation_graph, _graph_of(current))
        .where(automation.c.id == automation_id),
        "automation",
    )
    issues: list[ReferenceIssue] = []
    if row.graph is not None:
        graph = read_graph(row.graph)
        place = actor.workspace_id, automation_id
        issues = (await compile_in(work, *place, row.trigger_config, graph)).all_issues
    # Whoever knows the path may call the webhook.
    shows_webhook = await may_edit(work, actor, automation_id)
    return shapes.AutomationDetail(
        **dict(shapes.AutomationSummary.model_validate(row)),
        trigger_config=row.trigger_config,
        graph=row.graph if shows_webhook or row.graph is None else hidden(row.graph, written),
        webhook_path=f"/v1/hooks/{row.webhook_token}" if shows_webhook else None,
        webhook_secret=(
            keys.unseal(row.sealed_webhook_secret, webhook_secret_place(automation_id)).decode()
            if shows_webhook
            else None
        ),
        reference_issues=issues,
        schedule_notes=_schedule_notes(row.trigger_config, work.now),
    )


def _schedule_notes(trigger_config: JsonObject | None, now: datetime) -> list[str]:
    """The notes on the schedule of a version, if it has one that can be published."""
    trigger = None if trigger_config is None else read_trigger(trigger_config)
    if not isinstance(trigger, ScheduleTrigger) or next(iter(trigger_problems(trigger)), None):
        return []
    return schedule_notes(trigger.timetable, now)


async def may_edit(work: UnitOfWork, actor: Actor, automation_id: Id) -> bool:
    """True when the actor may change this automation: by scope, and by level on its item."""
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        return False
    return await visible.level(work, actor, automation_id) >= Level.EDIT


async def summary(work: UnitOfWork, actor: Actor, automation_id: Id) -> shapes.AutomationSummary:
    """One automation as lists show it. Raises NotFoundError."""
    row = await work.one(
        _summaries(actor.workspace_id).where(automation.c.id == automation_id), "automation"
    )
    return shapes.AutomationSummary.model_validate(row)


async def list_automations(
    work: UnitOfWork, actor: Actor, page: PageRequest
) -> shapes.AutomationList:
    """The automations the actor sees, newest first."""
    statement = _summaries(actor.workspace_id).where(
        automation.c.item_id.not_in(sa.select(closed_items(actor).c.id))
    )
    automations = await page.descending(
        work, statement, automation.c.created_at, automation.c.id, of=Automation
    )
    return shapes.AutomationList.of(automations)


async def next_due(work: UnitOfWork, actor: Actor, most: int) -> list[shapes.AutomationSummary]:
    """The automations the actor sees whose schedule fires next, `most` of them, the first first."""
    statement = (
        _summaries(actor.workspace_id)
        .where(
            automation.c.item_id.not_in(sa.select(closed_items(actor).c.id)),
            automation.c.enabled,
            automation.c.next_run_at.is_not(None),
        )
        .order_by(automation.c.next_run_at, automation.c.id)
        .limit(most)
    )
    return [shapes.AutomationSummary.model_validate(row) for row in await work.rows(statement)]


async def labels_of(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> dict[Id, str]:
    """The labels of automations by id; the caller has found out which of these the actor sees."""
    rows = await work.rows(
        sa.select(automation.c.id, automation.c.label).where(
            automation.c.workspace_id == actor.workspace_id, automation.c.id.in_(sorted(set(ids)))
        )
    )
    return {row.id: row.label for row in rows}


async def list_versions(
    work: UnitOfWork, actor: Actor, automation_id: Id, page: PageRequest
) -> shapes.AutomationVersionList:
    """The versions of an automation, newest first."""
    version = automation_version.c
    statement = (
        sa.select(automation_version)
        .where(version.workspace_id == actor.workspace_id, version.automation_id == automation_id)
        .order_by(version.version.desc())
    )
    if page.after is not None:
        statement = statement.where(version.version < page.after[0])
    rows = await work.rows(statement.limit(page.fetch))
    shown = page.of(rows, lambda row: (row.version,))
    return shapes.AutomationVersionList.of(shown)


async def version_detail(
    work: UnitOfWork, actor: Actor, automation_id: Id, version_id: Id
) -> shapes.AutomationVersionDetail:
    """One version with its graph, as the actor may see it."""
    row = await work.one(
        sa.select(automation_version, automation_graph.c.trigger_config, automation_graph.c.graph)
        .join(automation_graph, _graph_of(automation_version))
        .where(
            automation_version.c.workspace_id == actor.workspace_id,
            automation_version.c.automation_id == automation_id,
            automation_version.c.id == version_id,
        ),
        "version",
    )
    detail = shapes.AutomationVersionDetail.model_validate(row)
    if not await may_edit(work, actor, automation_id):
        detail.graph = hidden(row.graph, written)
    return detail


@dataclass(frozen=True, slots=True)
class LastChange:
    """The person who wrote a draft last, and when."""

    user_id: Id
    at: datetime


async def last_change(work: UnitOfWork, actor: Actor, automation_id: Id) -> LastChange | None:
    """The last change of the open draft; None without one, or if its author is not recorded."""
    version = automation_version.c
    row = await work.first(
        sa.select(version.changed_by_user_id, version.changed_at)
        .join(automation, automation.c.draft_version_id == version.id)
        .where(
            automation.c.workspace_id == actor.workspace_id,
            automation.c.id == automation_id,
            version.changed_by_user_id.is_not(None),
        )
    )
    return None if row is None else LastChange(row.changed_by_user_id, row.changed_at)


async def item_of_automation(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> Id | None:
    """The item of an automation, in the trash or not."""
    item_id: Id | None = await work.scalar(
        sa.select(automation.c.item_id).where(
            automation.c.workspace_id == workspace_id, automation.c.id == automation_id
        )
    )
    return item_id


async def authors_of(work: UnitOfWork, workspace_id: Id, automation_id: Id, most: int) -> list[Id]:
    """Some of the people who made versions of an automation, `most` of them."""
    version = automation_version.c
    rows = await work.rows(
        sa.select(version.created_by_user_id)
        .where(
            version.workspace_id == workspace_id,
            version.automation_id == automation_id,
            version.created_by_user_id.is_not(None),
        )
        .distinct()
        .limit(most)
    )
    return [row.created_by_user_id for row in rows]


def read_graph(content: dict[str, Any]) -> Graph:
    """Parse a stored graph."""
    return _GRAPH.validate_python(content)


def _graph_of(version: sa.FromClause) -> sa.ColumnElement[bool]:
    owned: sa.ColumnElement[bool] = (
        automation_graph.c.automation_id == version.c.automation_id
    ) & (automation_graph.c.checksum == version.c.checksum)
    return owned


def _summaries(workspace_id: Id) -> sa.Select[Any]:
    return (
        sa.select(
            automation.c.id,
            automation.c.workspace_id,
            automation.c.item_id,
            automation.c.key,
            automation.c.label,
            automation.c.enabled,
            automation.c.published_version_id,
            automation.c.draft_version_id,
            automation.c.next_run_at,
            automation.c.created_at,
            automation.c.updated_at,
            current.c.id.label("version_id"),
            current.c.version,
            current.c.trigger,
            sa.and_(
                automation.c.draft_version_id.is_not(None),
                current.c.checksum.is_distinct_from(published.c.checksum),
            ).label("has_unpublished_changes"),
            last_triggered_at(automation.c.id).label("last_triggered_at"),
        )
        .join(*live_item_of(automation))
        .outerjoin(
            current,
            current.c.id
            == sa.func.coalesce(automation.c.draft_version_id, automation.c.published_version_id),
        )
        .outerjoin(published, published.c.id == automation.c.published_version_id)
        .where(automation.c.workspace_id == workspace_id)
    )


AUTOMATION = automation.c
VERSION = automation_version.c
GRAPH = automation_graph.c
"""The columns of what the joins below add; `runnable_versions.LIVE` has all three."""


def automation_of(run: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the automation of a run: `select(…).join(*automation_of(run))`."""
    return automation, automation.c.id == run.c.automation_id


def version_of(run: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the version of a run."""
    return automation_version, automation_version.c.id == run.c.automation_version_id


def graph_of(run: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the graph that a run executes."""
    executed = sa.and_(
        automation_graph.c.automation_id == run.c.automation_id,
        automation_graph.c.checksum == run.c.graph_checksum,
    )
    return automation_graph, executed


def open_automations(actor: Actor, level: Level) -> sa.Select[Any]:
    """The ids of the automations on which the actor has this level."""
    return sa.select(automation.c.id).where(
        automation.c.workspace_id == actor.workspace_id,
        automation.c.item_id.not_in(sa.select(closed_items(actor, level).c.id)),
    )


def placed_automations() -> sa.Select[Any]:
    """The start of a `PlacementOf`, for what belongs to an automation."""
    return placed(automation)
