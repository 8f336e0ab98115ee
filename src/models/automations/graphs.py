"""Immutable graphs: stored once per content, compiled against what exists in the workspace."""

import hashlib
import json
from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automations.rules.compiler import (
    Compiled,
    ReferenceFacts,
    compile_graph,
    referenced_ids,
)
from models.automations.rules.graph import Graph
from models.automations.tables import automation, automation_graph
from models.base import Id, JsonObject
from models.databases.tables import database, field
from models.items.tables import item
from runtime.database import UnitOfWork


def content_checksum(trigger_config: JsonObject, graph: JsonObject) -> str:
    """SHA-256 of the canonical JSON of what a version does."""
    text = json.dumps([trigger_config, graph], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


async def compile_in(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id | None,
    trigger_config: JsonObject,
    graph: Graph,
) -> Compiled:
    """Compile a graph against the databases and automations its workspace has."""
    ids = referenced_ids(graph)
    facts = ReferenceFacts(
        automation_id=None if automation_id is None else str(automation_id),
        databases=await _database_fields(work, workspace_id, ids),
        automations=await _automations(work, workspace_id, ids),
    )
    return compile_graph(graph, trigger_config, facts)


async def store(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id,
    trigger_config: JsonObject,
    graph: Graph,
    compiled: Compiled,
) -> str:
    """Keep a graph and its plan under its checksum; storing the same again changes nothing."""
    content = graph.to_json()
    checksum = content_checksum(trigger_config, content)
    plan = None if compiled.plan is None else compiled.plan.to_json()
    statement = upsert(automation_graph).values(
        workspace_id=workspace_id,
        automation_id=automation_id,
        checksum=checksum,
        trigger_config=trigger_config,
        graph=content,
        plan=plan,
    )
    if plan is None:
        statement = statement.on_conflict_do_nothing()
    else:
        statement = statement.on_conflict_do_update(
            index_elements=["automation_id", "checksum"], set_={"plan": plan}
        )
    await work.execute(statement)
    return checksum


async def _database_fields(
    work: UnitOfWork, workspace_id: Id, ids: Collection[Id]
) -> dict[str, frozenset[str]]:
    if not ids:
        return {}
    rows = await work.rows(
        select(database.c.id, field.c.key)
        .join(item, item.c.id == database.c.item_id)
        .outerjoin(field, field.c.database_id == database.c.id)
        .where(
            database.c.workspace_id == workspace_id,
            item.c.deleted_at.is_(None),
            database.c.id.in_(sorted(ids)),
        )
    )
    fields: dict[str, set[str]] = {}
    for row in rows:
        fields.setdefault(str(row.id), set()).add(row.key)
    return {key: frozenset(keys) for key, keys in fields.items()}


async def _automations(work: UnitOfWork, workspace_id: Id, ids: Collection[Id]) -> frozenset[str]:
    if not ids:
        return frozenset()
    rows = await work.rows(
        select(automation.c.id)
        .join(item, item.c.id == automation.c.item_id)
        .where(
            automation.c.workspace_id == workspace_id,
            item.c.deleted_at.is_(None),
            automation.c.id.in_(sorted(ids)),
        )
    )
    return frozenset(str(row.id) for row in rows)
