"""Graphs: what one refers to, compiled, stored once per content, and read by it."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import ClassVar, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations.references import stored_references
from models.automation.automations.rules.graph import catalog as graph_catalog
from models.automation.automations.rules.graph import compiler
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.automation.secrets.store import existing_names
from models.content.items.joins import ITEM, live_item_of, live_items
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.rows import fields_by_database
from models.data.fields.rules.fields import FieldSpecs
from models.data.views.queries import existing_views
from models.messages.webhook_endpoints.store import existing_endpoints, sees_endpoint
from models.people.members import members_among
from models.sources.connections.store import existing_connections, sees_connection
from models.sources.data_sources.queries import existing_data_sources
from runtime.database import UnitOfWork, Work
from runtime.errors import NotFoundError
from runtime.postgresql.statements import PreparedStatement


async def load_catalog(
    work: UnitOfWork, workspace_id: Id, automation_id: Id | None, ids: Collection[Id]
) -> graph_catalog.ReferenceCatalog:
    """The things of these ids that the workspace has, outside the trash."""
    return graph_catalog.ReferenceCatalog(
        automation_id=None if automation_id is None else str(automation_id),
        databases=await _databases(work, workspace_id, ids),
        existing=await _existing(work, workspace_id, ids),
        triggers=await _triggers(work, workspace_id, ids),
    )


_SEES: Mapping[graph_catalog.Resource, Callable[[UnitOfWork, Actor, Id], Awaitable[bool]]] = {
    graph_catalog.Resource.CONNECTION: sees_connection,
    graph_catalog.Resource.ENDPOINT: sees_endpoint,
}


async def check_named(
    work: UnitOfWork, actor: Actor, graph: Graph, before: Graph | None = None
) -> None:
    """Raise NotFoundError for a connection or endpoint that the author of a graph does not see.

    One that the graph named `before` was seen by who named it (ADR 0037).
    """
    known = frozenset() if before is None else graph_catalog.named_by_author(before)
    for resource, named in sorted(graph_catalog.named_by_author(graph) - known):
        if not await _SEES[resource](work, actor, named):
            raise NotFoundError(resource.value)


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
        sa.select(automation.c.id, automation_graph.c.trigger_config)
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
) -> dict[graph_catalog.Resource, frozenset[str]]:
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
        graph_catalog.Resource.ACTION: actions,
        graph_catalog.Resource.AUTOMATION: _automations(workspace_id, sorted_ids),
        graph_catalog.Resource.CONNECTION: existing_connections(workspace_id, sorted_ids),
        graph_catalog.Resource.DATA_SOURCE: existing_data_sources(workspace_id, sorted_ids),
        graph_catalog.Resource.ENDPOINT: existing_endpoints(workspace_id, sorted_ids),
        graph_catalog.Resource.FORM: forms,
        graph_catalog.Resource.VIEW: existing_views(workspace_id, sorted_ids),
        graph_catalog.Resource.MEMBER: members_among(workspace_id, sorted_ids),
    }
    statement = sa.union_all(
        *(
            ids_of_resource.add_columns(
                sa.cast(sa.literal(resource.value), sa.String).label("resource")
            )
            for resource, ids_of_resource in existing.items()
        )
    )
    found: dict[graph_catalog.Resource, set[str]] = {}
    for row in await work.rows(statement):
        found.setdefault(graph_catalog.Resource(row.resource), set()).add(str(row.id))
    return {resource: frozenset(known) for resource, known in found.items()}


def _automations(workspace_id: Id, ids: Collection[Id]) -> sa.Select[Id]:
    return (
        sa.select(automation.c.id)
        .join(*live_item_of(automation))
        .where(automation.c.workspace_id == workspace_id, automation.c.id.in_(ids))
    )


def content_checksum(trigger_config: JsonObject, graph: JsonObject) -> str:
    """SHA-256 of the canonical JSON of a trigger config and a graph."""
    text = json.dumps([trigger_config, graph], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


FindMailActions = Callable[[UnitOfWork, Id, Collection[Id]], Awaitable[Collection[Id]]]
"""Takes a workspace and ids; gives the actions among them that send an email."""


async def _no_actions(_work: UnitOfWork, _workspace_id: Id, _ids: Collection[Id]) -> list[Id]:
    return []


class _Process:
    """Settings of this process. Until they are set, no graph is warned of a missing mail server."""

    has_mail_server: ClassVar[bool] = True
    find_mail_actions: ClassVar[list[FindMailActions]] = [_no_actions]


def find_mail_actions_with(find: FindMailActions) -> None:
    """Ask `find` for actions that send an email; `models.registrations` lists it."""
    _Process.find_mail_actions = [find]


def set_mail_server(*, is_configured: bool) -> None:
    """Set if the settings of this process name a mail server."""
    _Process.has_mail_server = is_configured


async def compile_in(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id | None,
    trigger_config: JsonObject,
    graph: Graph,
) -> compiler.Compiled:
    """Compile a graph against what its workspace has."""
    ids = compiler.referenced_ids(graph, trigger_config)
    catalog = await load_catalog(work, workspace_id, automation_id, ids)
    secrets = graph_catalog.referenced_secrets(graph, trigger_config)
    names = await existing_names(work, workspace_id, secrets)
    catalog = replace(catalog, secrets=names, has_mail_server=_Process.has_mail_server)
    if not catalog.has_mail_server and catalog.existing.get(graph_catalog.Resource.ACTION):
        (find,) = _Process.find_mail_actions
        found = await find(work, workspace_id, ids)
        catalog = replace(catalog, mail_actions=frozenset(map(str, found)))
    return compiler.compile_graph(graph, trigger_config, catalog)


async def store(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id,
    trigger_config: JsonObject,
    graph: Graph,
    compilation: compiler.Compiled,
) -> str:
    """Store a graph and its plan under their checksum, and return it. Repeating changes nothing."""
    content = graph.to_json()
    checksum = content_checksum(trigger_config, content)
    plan = None if compilation.plan is None else compilation.plan.to_json()
    statement = upsert(automation_graph).values(
        workspace_id=workspace_id,
        automation_id=automation_id,
        checksum=checksum,
        trigger_config=trigger_config,
        graph=content,
        plan=plan,
        **await stored_references(work, workspace_id, trigger_config, content),
    )
    if plan is None:
        statement = statement.on_conflict_do_nothing()
    else:
        statement = statement.on_conflict_do_update(
            index_elements=["automation_id", "checksum"], set_={"plan": plan}
        )
    await work.execute(statement)
    return checksum


async def keep_plan(
    work: UnitOfWork,
    automation_id: Id,
    checksum: str | sa.ScalarSelect[str],
    compilation: compiler.Compiled,
) -> None:
    """Store the plan of a graph that had issues when it was stored.

    The row is found by its stored checksum: the same content might be serialised differently now.
    """
    assert compilation.plan is not None, "it has no issues now"
    await work.execute(
        sa.update(automation_graph)
        .where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == checksum,
            automation_graph.c.plan.is_(None),
        )
        .values(plan=compilation.plan.to_json())
    )


class StoredPlan(Protocol):
    """A compiled graph; `plan` is None for one that was never compiled."""

    plan: JsonObject | None


class StoredGraph(StoredPlan, Protocol):
    """A graph as it was saved, and compiled."""

    graph: JsonObject


_THIS = (
    automation_graph.c.automation_id == sa.bindparam("automation_id"),
    automation_graph.c.checksum == sa.bindparam("checksum"),
)
_GRAPH = PreparedStatement(
    sa.select(automation_graph.c.plan, automation_graph.c.graph).where(*_THIS), StoredGraph
)
_PLAN = PreparedStatement(sa.select(automation_graph.c.plan).where(*_THIS), StoredPlan)


async def stored_graph(work: Work, automation_id: Id, checksum: str) -> StoredGraph | None:
    """A graph of an automation."""
    return await _GRAPH.first(work, {"automation_id": automation_id, "checksum": checksum})


async def stored_plan(work: Work, automation_id: Id, checksum: str) -> StoredPlan | None:
    """The compiled form of a graph alone."""
    return await _PLAN.first(work, {"automation_id": automation_id, "checksum": checksum})


async def number_of_nodes(work: UnitOfWork, automation_id: Id, checksum: str) -> int | None:
    """The number of nodes of a graph; None when it is gone."""
    number: int | None = await work.scalar(
        sa.select(sa.func.jsonb_array_length(automation_graph.c.graph["nodes"])).where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == checksum,
        )
    )
    return number


async def store_like(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id,
    checksum: str,
    trigger_config: JsonObject,
    graph: JsonObject,
) -> str:
    """Store a graph that executes as another one of the automation does, and return its checksum.

    Its plan is that of the other: a plan has no keys of fields.
    """
    new_checksum = content_checksum(trigger_config, graph)
    references = await stored_references(work, workspace_id, trigger_config, graph)
    source = sa.select(
        automation_graph.c.workspace_id,
        automation_graph.c.automation_id,
        sa.literal(new_checksum),
        sa.literal(trigger_config, JSONB),
        sa.literal(graph, JSONB),
        automation_graph.c.plan,
        *(sa.literal(value, automation_graph.c[name].type) for name, value in references.items()),
    ).where(
        automation_graph.c.automation_id == automation_id,
        automation_graph.c.checksum == checksum,
    )
    columns = ["workspace_id", "automation_id", "checksum", "trigger_config", "graph", "plan"]
    columns += references
    statement = upsert(automation_graph).from_select(columns, source)
    await work.execute(statement.on_conflict_do_nothing())
    return new_checksum
