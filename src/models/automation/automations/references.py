"""What a graph and its trigger name, looked up in the workspace."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, String, Uuid, cast, literal, select, union_all

from models.automation.actions.tables import action
from models.automation.automations.rules.graph.catalog import Noun, ReferenceCatalog
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.core.base import Id, JsonObject
from models.data.databases.field_rows import fields_as_text, read_fields
from models.data.databases.rules.fields import FieldSpecs
from models.data.databases.tables import database
from models.data.views.tables import view
from models.people.workspaces.tables import workspace_member
from models.sources.data_sources.tables import data_source
from runtime.database import UnitOfWork


async def load_catalog(
    work: UnitOfWork, workspace_id: Id, automation_id: Id | None, ids: Collection[Id]
) -> ReferenceCatalog:
    """Which of the ids the workspace has, outside the trash, and what they are."""
    return ReferenceCatalog(
        automation_id=None if automation_id is None else str(automation_id),
        databases=await _databases(work, workspace_id, ids),
        existing=await _existing(work, workspace_id, ids),
        triggers=await _triggers(work, workspace_id, ids),
    )


async def _databases(
    work: UnitOfWork, workspace_id: Id, ids: Collection[Id]
) -> dict[str, FieldSpecs]:
    if not ids:
        return {}
    rows = await work.rows(
        select(database.c.id, fields_as_text().label("fields"))
        .join(item, item.c.id == database.c.item_id)
        .where(
            database.c.workspace_id == workspace_id,
            item.c.deleted_at.is_(None),
            database.c.id.in_(sorted(ids)),
        )
    )
    return {str(row.id): read_fields(row.fields) for row in rows}


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
    named = sorted(ids)
    placed = [
        _found(noun, table.c.id)
        .join(item, item.c.id == table.c.item_id)
        .where(
            table.c.workspace_id == workspace_id,
            item.c.deleted_at.is_(None),
            table.c.id.in_(named),
        )
        for noun, table in _PLACED.items()
    ]
    others = [
        _found(Noun.FORM, item.c.id).where(
            item.c.workspace_id == workspace_id,
            item.c.kind == ItemKind.FORM,
            item.c.deleted_at.is_(None),
            item.c.id.in_(named),
        ),
        _found(Noun.VIEW, view.c.id).where(
            view.c.workspace_id == workspace_id, view.c.id.in_(named)
        ),
        _found(Noun.MEMBER, workspace_member.c.user_id).where(
            workspace_member.c.workspace_id == workspace_id, workspace_member.c.user_id.in_(named)
        ),
    ]
    found: dict[Noun, set[str]] = {}
    for row in await work.rows(union_all(*placed, *others)):
        found.setdefault(Noun(row.noun), set()).add(str(row.id))
    return {noun: frozenset(known) for noun, known in found.items()}


_PLACED = {Noun.ACTION: action, Noun.AUTOMATION: automation, Noun.DATA_SOURCE: data_source}


def _found(noun: Noun, id_: ColumnElement[Id]) -> Select[str, Id]:
    return select(cast(literal(noun.value), String).label("noun"), cast(id_, Uuid).label("id"))
