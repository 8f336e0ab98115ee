"""Storing graphs, once per content, and compiling them against what the workspace has."""

import hashlib
import json
from dataclasses import replace

from sqlalchemy import ScalarSelect, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations.references import load_catalog
from models.automation.automations.rules.graph.catalog import referenced_secrets
from models.automation.automations.rules.graph.compiler import (
    Compiled,
    compile_graph,
    referenced_ids,
)
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.tables import automation_graph
from models.automation.secrets.queries import existing_names
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork


def content_checksum(trigger_config: JsonObject, graph: JsonObject) -> str:
    """SHA-256 of the canonical JSON of a trigger config and a graph."""
    text = json.dumps([trigger_config, graph], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


async def compile_in(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id | None,
    trigger_config: JsonObject,
    graph: Graph,
) -> Compiled:
    """Compile a graph against what its workspace has."""
    ids = referenced_ids(graph, trigger_config)
    catalog = await load_catalog(work, workspace_id, automation_id, ids)
    secrets = referenced_secrets(graph, trigger_config)
    catalog = replace(catalog, secrets=await existing_names(work, workspace_id, secrets))
    return compile_graph(graph, trigger_config, catalog)


async def store(
    work: UnitOfWork,
    workspace_id: Id,
    automation_id: Id,
    trigger_config: JsonObject,
    graph: Graph,
    compilation: Compiled,
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
    work: UnitOfWork, automation_id: Id, checksum: str | ScalarSelect[str], compilation: Compiled
) -> None:
    """Store the plan of a graph that had issues when it was stored.

    The row is found by its stored checksum: the same content might be serialised differently now.
    """
    assert compilation.plan is not None, "it has no issues now"
    await work.execute(
        update(automation_graph)
        .where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == checksum,
            automation_graph.c.plan.is_(None),
        )
        .values(plan=compilation.plan.to_json())
    )
