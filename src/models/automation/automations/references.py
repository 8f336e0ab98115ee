"""The graphs of a workspace that may name a thing, with what they name.

A graph that names a field has the id of its database in it, or the id of a form of it. So only the
graphs with one of these texts are read, and what they name is found by reading them.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
)

from models.automation.automations.rules.graph.references import FormDatabases, graph_references
from models.automation.automations.shapes import VersionStatus
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import live_item_of
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.references.rules import Definition, Sought, SubjectKind
from models.data.forms.queries import databases_of_forms
from runtime.database import UnitOfWork


class FoundGraph(Protocol):
    """A graph of an automation that may name a thing, in one of its roles."""

    automation_id: Id
    label: str
    item_id: Id
    version_id: Id
    version: int
    state: str
    runs: int
    trigger_config: JsonObject
    graph: JsonObject


async def graph_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The published, draft and canary versions that may name a thing."""
    forms = await forms_of(work, actor, sought)
    rows = await work.rows(_versions(actor.workspace_id, texts_of(sought, forms)), of=FoundGraph)
    return [definition_of(row, forms) for row in rows]


async def forms_of(work: UnitOfWork, actor: Actor, sought: Sought) -> FormDatabases:
    """The forms whose answers are records of the database of what is asked for."""
    if sought.database_id is None:
        return {}
    return await databases_of_forms(work, actor.workspace_id, sought.database_id)


def texts_of(sought: Sought, forms: FormDatabases) -> Collection[str]:
    """The texts one of which a graph has in it if it names a thing."""
    keyed = sought.kind in (SubjectKind.FIELD, SubjectKind.OPTION)
    return [*sought.ids, *(forms if keyed else ())]


def definition_of(row: FoundGraph, forms: FormDatabases) -> Definition:
    """A graph as what names things; one of open runs is a definition of its own."""
    return Definition(
        kind="automation_run" if row.runs else "automation",
        id=row.automation_id,
        label=row.label,
        scope=Scope.AUTOMATIONS_READ,
        item_id=row.item_id,
        version_id=row.version_id,
        version=row.version,
        state=row.state,
        runs=row.runs,
        document={"triggerConfig": row.trigger_config, "graph": row.graph},
        references=graph_references(row.trigger_config, row.graph, forms),
    )


def has_one_of(texts: Collection[str]) -> ColumnElement[bool]:
    """True for a graph that has one of these texts in it, or its trigger."""
    content = func.lower(
        cast(automation_graph.c.trigger_config, Text) + cast(automation_graph.c.graph, Text)
    )
    return or_(*(func.strpos(content, literal(text.lower())) > 0 for text in texts))


_STATE = func.coalesce(
    func.nullif(automation_version.c.status, VersionStatus.ARCHIVED.value), "canary"
)


def _versions(workspace_id: Id, texts: Collection[str]) -> Select[FoundGraph]:
    version = automation_version.c
    variant = func.jsonb_build_object("id", cast(version.id, Text))
    current = or_(
        version.id.in_([automation.c.published_version_id, automation.c.draft_version_id]),
        automation.c.canary["variants"].contains(func.jsonb_build_array(variant)),
    )
    return (
        select(
            automation.c.id.label("automation_id"),
            automation.c.label,
            automation.c.item_id,
            version.id.label("version_id"),
            version.version,
            _STATE.label("state"),
            literal(0).label("runs"),
            automation_graph.c.trigger_config,
            automation_graph.c.graph,
        )
        .join(*live_item_of(automation))
        .join(automation_version, and_(version.automation_id == automation.c.id, current))
        .join(automation_graph, graph_of_version())
        .where(automation.c.workspace_id == workspace_id, has_one_of(texts))
        .order_by(automation.c.label, automation.c.id, version.version)
    )


def graph_of_version() -> ColumnElement[bool]:
    """The condition of the graph of a version."""
    return and_(
        automation_graph.c.automation_id == automation_version.c.automation_id,
        automation_graph.c.checksum == automation_version.c.checksum,
    )
