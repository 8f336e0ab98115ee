"""Looking up what a graph and its trigger refer to, for the compiler."""

from collections.abc import Awaitable, Callable, Collection, Mapping

from sqlalchemy import Select, String, cast, literal, select, union_all

from models.automation.automations.rules.graph.catalog import (
    Noun,
    ReferenceCatalog,
    named_by_author,
)
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import ITEM, live_item_of, live_items
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.field_rows import fields_by_database
from models.data.fields.rules.fields import FieldSpecs
from models.data.views.queries import existing_views
from models.messages.webhook_endpoints.queries import existing_endpoints, sees_endpoint
from models.people.members.queries import members_among
from models.sources.connections.queries import existing_connections, sees_connection
from models.sources.data_sources.queries import existing_data_sources
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def load_catalog(
    work: UnitOfWork, workspace_id: Id, automation_id: Id | None, ids: Collection[Id]
) -> ReferenceCatalog:
    """The things of these ids that the workspace has, outside the trash."""
    return ReferenceCatalog(
        automation_id=None if automation_id is None else str(automation_id),
        databases=await _databases(work, workspace_id, ids),
        existing=await _existing(work, workspace_id, ids),
        triggers=await _triggers(work, workspace_id, ids),
    )


_SEES: Mapping[Noun, Callable[[UnitOfWork, Actor, Id], Awaitable[bool]]] = {
    Noun.CONNECTION: sees_connection,
    Noun.ENDPOINT: sees_endpoint,
}


async def check_named(
    work: UnitOfWork, actor: Actor, graph: Graph, before: Graph | None = None
) -> None:
    """Raise NotFoundError for a connection or endpoint that the author of a graph does not see.

    One that the graph named `before` was seen by who named it (ADR 0037).
    """
    known = frozenset() if before is None else named_by_author(before)
    for noun, named in sorted(named_by_author(graph) - known):
        if not await _SEES[noun](work, actor, named):
            raise NotFoundError(noun.value)


async def _databases(
    work: UnitOfWork, workspace_id: Id, ids: Collection[Id]
) -> dict[str, FieldSpecs]:
    if not ids:
        return {}
    found = await fields_by_database(work, workspace_id, ids)
    return {str(database_id): fields for database_id, fields in found.items()}


async def _triggers(
    work: UnitOfWork, workspace_id: Id, ids: Collection[Id]
) -> dict[str, JsonObject]:
    if not ids:
        return {}
    rows = await work.rows(
        select(automation.c.id, automation_graph.c.trigger_config)
        .join(automation_version, automation_version.c.id == automation.c.published_version_id)
        .join(
            automation_graph,
            (automation_graph.c.automation_id == automation.c.id)
            & (automation_graph.c.checksum == automation_version.c.checksum),
        )
        .where(automation.c.workspace_id == workspace_id, automation.c.id.in_(sorted(ids)))
    )
    return {str(row.id): row.trigger_config for row in rows}


async def _existing(
    work: UnitOfWork, workspace_id: Id, ids: Collection[Id]
) -> dict[Noun, frozenset[str]]:
    if not ids:
        return {}
    sorted_ids = sorted(ids)
    forms = live_items(workspace_id, ITEM.id).where(
        ITEM.kind == ItemKind.FORM, ITEM.id.in_(sorted_ids)
    )
    actions = live_items(workspace_id, ITEM.target_id.label("id")).where(
        ITEM.kind == ItemKind.ACTION, ITEM.target_id.in_(sorted_ids)
    )
    existing = {
        Noun.ACTION: actions,
        Noun.AUTOMATION: _automations(workspace_id, sorted_ids),
        Noun.CONNECTION: existing_connections(workspace_id, sorted_ids),
        Noun.DATA_SOURCE: existing_data_sources(workspace_id, sorted_ids),
        Noun.ENDPOINT: existing_endpoints(workspace_id, sorted_ids),
        Noun.FORM: forms,
        Noun.VIEW: existing_views(workspace_id, sorted_ids),
        Noun.MEMBER: members_among(workspace_id, sorted_ids),
    }
    statement = union_all(
        *(
            ids_of_noun.add_columns(cast(literal(noun.value), String).label("noun"))
            for noun, ids_of_noun in existing.items()
        )
    )
    found: dict[Noun, set[str]] = {}
    for row in await work.rows(statement):
        found.setdefault(Noun(row.noun), set()).add(str(row.id))
    return {noun: frozenset(known) for noun, known in found.items()}


def _automations(workspace_id: Id, ids: Collection[Id]) -> Select[Id]:
    return (
        select(automation.c.id)
        .join(*live_item_of(automation))
        .where(automation.c.workspace_id == workspace_id, automation.c.id.in_(ids))
    )
