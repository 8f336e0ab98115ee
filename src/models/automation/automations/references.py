"""The graphs of a workspace that may name a thing, with what they name.

What a graph names is found when it is stored, and stored with it: a graph never changes. A graph
that was stored by an earlier version of the reading is read again when it is asked for. It has the
id of what it names in it, or the id of a form of its database, so only graphs with one of these
texts are read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.automation.automations.rules.graph.references import (
    REFERENCES_VERSION,
    FormDatabases,
    graph_references,
)
from models.automation.automations.shapes import VersionStatus
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import live_item_of
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.expressions.rules.typed_reads import KeyOf, ListOf, Struct, record_of, with_keys
from models.core.references import rules
from models.data.fields.rows import former_keys
from models.data.forms.queries import databases_of_forms
from runtime.database import UnitOfWork
from runtime.ids import parse_id


def payload_type(database: str) -> Struct:
    """The type of the payload of an event of a database."""
    return Struct(
        {
            **dict.fromkeys(("record", "before"), record_of(database)),
            "changedKeys": ListOf(KeyOf(database)),
            "fieldKey": KeyOf(database),
        }
    )


async def with_present_keys(
    work: UnitOfWork, workspace_id: Id, payload: JsonObject, since: datetime
) -> JsonObject:
    """A payload of this moment, of an event of a database, by the keys that its fields have now."""
    record = payload.get("record")
    named = record.get("databaseId") if isinstance(record, dict) else None
    database = parse_id(named) if isinstance(named, str) else None
    if database is None:
        return payload
    former = await former_keys(work, workspace_id, [database])
    # At once: a key that one field had may be that of another by now.
    types, keys = payload_type(str(database)), former[database].at(since)
    return cast("JsonObject", with_keys(payload, types, str(database), keys))


class FoundGraph(Protocol):
    """A graph of an automation that may name a thing, in one of its roles."""

    checksum: str

    automation_id: Id
    label: str
    item_id: Id
    version_id: Id
    version: int
    state: str
    runs: int
    trigger_config: JsonObject


class _Content(Protocol):
    automation_id: Id
    checksum: str
    graph: JsonObject | None
    graph_references: list[JsonObject] | None


_MOST_KNOWN = 2_000


class _Known:
    """The references of graphs that this process has asked for: a graph never changes.

    The oldest are read again once there are too many.
    """

    references: ClassVar[dict[tuple[str, str | None], Sequence[rules.Reference]]] = {}

    @classmethod
    def put(cls, key: tuple[str, str | None], references: Sequence[rules.Reference]) -> None:
        if len(cls.references) >= _MOST_KNOWN:
            cls.references.pop(next(iter(cls.references)), None)
        cls.references[key] = references


async def stored_references(
    work: UnitOfWork, workspace_id: Id, trigger_config: JsonObject, graph: JsonObject
) -> dict[str, Any]:
    """The columns of a graph that say what it names.

    They stay empty while the form that starts it is not there: its answers are of no known type.
    """
    named = trigger_config.get("formItemId")
    forms: FormDatabases = {}
    if isinstance(named, str):
        forms = await databases_of_forms(work, workspace_id)
        if named.lower() not in forms:
            return {"references_version": None, "referenced_ids": None, "graph_references": None}
    references = graph_references(trigger_config, graph, forms)
    return {
        "references_version": REFERENCES_VERSION,
        "referenced_ids": sorted({one.subject.id for one in references}),
        "graph_references": rules.as_stored(references),
    }


async def graph_definitions(
    work: UnitOfWork, actor: Actor, sought: rules.Sought
) -> Sequence[rules.Definition]:
    """The published, draft and canary versions that may name a thing."""
    forms = await forms_of(work, actor, sought)
    rows = await work.rows(_versions(actor.workspace_id, texts_of(sought, forms)), of=FoundGraph)
    return await definitions_of(work, actor, rows, forms)


async def forms_of(work: UnitOfWork, actor: Actor, sought: rules.Sought) -> FormDatabases:
    """The forms whose answers are records of the database of what is asked for."""
    if sought.database_id is None:
        return {}
    return await databases_of_forms(work, actor.workspace_id, sought.database_id)


def texts_of(sought: rules.Sought, forms: FormDatabases) -> Collection[str]:
    """The texts one of which a graph has in it if it names a thing."""
    keyed = sought.kind in (rules.SubjectKind.FIELD, rules.SubjectKind.OPTION)
    return [*sought.ids, *(forms if keyed else ())]


async def definitions_of(
    work: UnitOfWork, actor: Actor, rows: Sequence[FoundGraph], forms: FormDatabases
) -> Sequence[rules.Definition]:
    """Graphs as what names things; one of open runs is a definition of its own."""
    by_graph = await _references(work, actor, rows, forms)
    return [
        rules.Definition(
            kind="automation_run" if row.runs else "automation",
            id=row.automation_id,
            label=row.label,
            scope=Scope.AUTOMATIONS_READ,
            item_id=row.item_id,
            version_id=row.version_id,
            version=row.version,
            state=row.state,
            runs=row.runs,
            references=by_graph[_key(row, forms)],
        )
        for row in rows
    ]


def _key(row: FoundGraph, forms: FormDatabases) -> tuple[str, str | None]:
    """A graph by its checksum, with the database of the form that starts it."""
    return row.checksum, forms.get(str(row.trigger_config.get("formItemId")).lower())


async def _references(
    work: UnitOfWork, actor: Actor, rows: Sequence[FoundGraph], forms: FormDatabases
) -> Mapping[tuple[str, str | None], Sequence[rules.Reference]]:
    """The references of these graphs; unknown graphs are read."""
    wanted = {_key(row, forms): row for row in rows}
    by_graph = {key: _Known.references[key] for key in wanted if key in _Known.references}
    unknown = {key: row for key, row in wanted.items() if key not in by_graph}
    graphs = await _contents(work, actor, unknown.values())
    for key, row in unknown.items():
        content = graphs[row.automation_id, row.checksum]
        if content.graph is None:
            by_graph[key] = rules.from_stored(content.graph_references or ())
        else:
            by_graph[key] = graph_references(row.trigger_config, content.graph, forms)
        _Known.put(key, by_graph[key])
    return by_graph


_graph = automation_graph.c
_IS_READ = sa.and_(
    _graph.references_version == REFERENCES_VERSION, _graph.graph_references.is_not(None)
)


async def _contents(
    work: UnitOfWork, actor: Actor, rows: Iterable[FoundGraph]
) -> Mapping[tuple[Id, str], _Content]:
    """The stored references of these graphs, and the graphs without stored references."""
    places = [(row.automation_id, row.checksum) for row in rows]
    if not places:
        return {}
    ids, checksums = zip(*places, strict=True)
    statement = sa.select(
        _graph.automation_id,
        _graph.checksum,
        sa.case((_IS_READ, sa.null()), else_=_graph.graph).label("graph"),
        sa.case((_IS_READ, _graph.graph_references)).label("graph_references"),
    ).where(
        _graph.workspace_id == actor.workspace_id,
        _graph.automation_id == sa.any_(sa.literal(list(ids), ARRAY(sa.Uuid))),
        _graph.checksum == sa.any_(sa.literal(list(checksums), ARRAY(sa.Text))),
    )
    found = await work.rows(statement, of=_Content)
    return {(row.automation_id, row.checksum): row for row in found}


def has_one_of(texts: Collection[str]) -> sa.ColumnElement[bool]:
    """True for a graph that names one of these ids; of one that is not read, may name."""
    content = sa.func.lower(
        sa.cast(_graph.trigger_config, sa.Text) + sa.cast(_graph.graph, sa.Text)
    )
    parts = sa.literal([f"%{text.lower()}%" for text in texts], ARRAY(sa.Text))
    may_name = content.like(sa.any_(parts))
    names = _graph.referenced_ids.overlap(sa.literal(list(texts), ARRAY(sa.String)))
    # The text of a graph is written out only where it must be.
    return sa.case((_IS_READ, names), else_=may_name)


_STATE = sa.func.coalesce(
    sa.func.nullif(automation_version.c.status, VersionStatus.ARCHIVED.value), "canary"
)


def _versions(workspace_id: Id, texts: Collection[str]) -> sa.Select[FoundGraph]:
    version = automation_version.c
    variant = sa.func.jsonb_build_object("id", sa.cast(version.id, sa.Text))
    current = sa.or_(
        version.id.in_([automation.c.published_version_id, automation.c.draft_version_id]),
        automation.c.canary["variants"].contains(sa.func.jsonb_build_array(variant)),
    )
    return (
        sa.select(
            automation.c.id.label("automation_id"),
            automation.c.label,
            automation.c.item_id,
            version.id.label("version_id"),
            version.version,
            _STATE.label("state"),
            sa.literal(0).label("runs"),
            automation_graph.c.checksum,
            automation_graph.c.trigger_config,
        )
        .join(*live_item_of(automation))
        .join(automation_version, sa.and_(version.automation_id == automation.c.id, current))
        .join(automation_graph, graph_of_version())
        .where(automation.c.workspace_id == workspace_id, has_one_of(texts))
        .order_by(automation.c.label, automation.c.id, version.version)
    )


def graph_of_version() -> sa.ColumnElement[bool]:
    """The condition of the graph of a version."""
    return sa.and_(
        automation_graph.c.automation_id == automation_version.c.automation_id,
        automation_graph.c.checksum == automation_version.c.checksum,
    )
