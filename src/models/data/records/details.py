"""Records on the wire, without the fields and links that the actor may not see."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import sqlalchemy as sa

from models.core.access.rules import MANAGERS, Actor
from models.core.base import Id, JsonObject
from models.data.fields.rows import DATABASE, closed_databases, fields_of_each, open_databases
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpecs, FieldValue, Schema
from models.data.formulas.rules import MAX_DEPTH
from models.data.records.links import LinksShown, Shown, id_array, shown_links, sides_of
from models.data.records.rules.computed_order import FOLLOWING, with_formulas
from models.data.records.rules.writes import StoredRecord
from models.data.records.shapes import RecordDetail, RelatedRecord
from models.data.records.tables import Record, record
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork

RecordRow: TypeAlias = Record | StoredRecord
"""A row of the record table, read or as a write leaves it."""


async def record_details(
    work: UnitOfWork,
    actor: Actor | None,
    schema: Schema,
    rows: Sequence[RecordRow],
    fields: FieldSpecs | None = None,
) -> list[RecordDetail]:
    """The records with the values of these fields (None: of all), as this actor sees them.

    Related records in the trash or out of the actor's sight are left out, and so is what is
    computed from a database the actor does not see. A reader who is not a member (None) sees
    nothing of other databases. One statement reads the links of any number of records.
    """
    specs = schema.fields if fields is None else fields
    links: LinksShown = {}
    hidden: Collection[str] = ()
    if actor is None:
        hidden = foreign_fields(schema.fields)
    elif rows:
        links = await shown_links(work, actor, schema, {row.id for row in rows}, sides_of(specs))
        if any(spec.derived for spec in specs.values()):
            hidden = await hidden_fields(work, actor, schema)
    return own_details(schema, rows, specs, links, hidden)


def own_details(
    schema: Schema,
    rows: Sequence[RecordRow],
    fields: FieldSpecs,
    links: LinksShown = MappingProxyType({}),
    hidden: Collection[str] = (),
) -> list[RecordDetail]:
    """The records with what their rows have of these fields; for links and what is hidden, see
    `record_details`.
    """
    placed = _Placed.of(fields)
    here = {"workspace_id": schema.workspace_id, "database_id": schema.database_id}
    blank = _BLANK.model_copy(update=here)
    return [_detail(blank, row, placed, links.get(row.id, {}), hidden) for row in rows]


@dataclass(frozen=True, slots=True)
class _Placed:
    """Fields by where their values stand in a record, told apart once for all records."""

    data: FieldSpecs
    relations: FieldSpecs
    computed: FieldSpecs
    system: FieldSpecs

    @classmethod
    def of(cls, fields: FieldSpecs) -> "_Placed":
        return cls(
            data={key: spec for key, spec in fields.items() if spec.stored},
            relations={key: spec for key, spec in fields.items() if spec.relation},
            computed={key: spec for key, spec in fields.items() if spec.computed},
            system={key: spec for key, spec in fields.items() if spec.system},
        )


def record_values(row: RecordRow, fields: FieldSpecs) -> JsonObject:
    """Every value of a record that is in its own row, by field key; of a timer its total."""
    timers = {
        key: _timer(row, key)["totalMs"]
        for key, spec in fields.items()
        if spec.kind is FieldKind.TIMER
    }
    return {**_data(row.title, row.data, fields), **row.computed, **timers, **_system(row, fields)}


def _detail(
    blank: RecordDetail,
    row: RecordRow,
    placed: _Placed,
    links: Mapping[str, Sequence[Shown]],
    hidden: Collection[str],
) -> RecordDetail:
    """The row comes from our own typed columns, so the shape is built without checking it again."""
    values = {
        "id": row.id,
        "content_surface_id": row.content_surface_id,
        "title": row.title,
        "data": _data(row.title, row.data, placed.data),
        "archived": row.archived,
        "created_by_user_id": row.created_by_user_id,
        "updated_by_user_id": row.updated_by_user_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
    if placed.relations:
        shown = {key: links.get(key, ()) for key in placed.relations}
        values["relations"] = {key: [str(one.id) for one in ones] for key, ones in shown.items()}
        values["related"] = {key: [_related(one) for one in ones] for key, ones in shown.items()}
    if placed.computed:
        values["computed"] = {
            key: None if key in hidden else _computed(row, key, spec.kind)
            for key, spec in placed.computed.items()
        }
    if placed.system:
        values["system"] = _system(row, placed.system)
    return _filled(blank, values)


_WITHOUT: JsonObject = {"relations": {}, "computed": {}, "system": {}, "related": {}}
_BLANK = RecordDetail.model_construct(**{**dict.fromkeys(RecordDetail.model_fields), **_WITHOUT})
"""The shape of a record without links and computed values, and without an owner."""


def _filled(blank: RecordDetail, values: Mapping[str, object]) -> RecordDetail:
    """The blank with these values.

    Without the general case of `model_copy`: 200 records take two thirds of the processor time.
    """
    filled = RecordDetail.__new__(RecordDetail)
    _put(filled, "__dict__", {**blank.__dict__, **values})
    _put(filled, "__pydantic_fields_set__", blank.__pydantic_fields_set__)
    _put(filled, "__pydantic_extra__", None)
    _put(filled, "__pydantic_private__", None)
    return filled


_put = object.__setattr__


def _related(target: Shown) -> RelatedRecord:
    return RelatedRecord.model_construct(
        id=target.id, title=target.title, database_id=target.database_id
    )


def _computed(row: RecordRow, key: str, kind: FieldKind) -> FieldValue:
    """The last value; of a timer the time of completed entries, and which entry runs."""
    return _timer(row, key) if kind is FieldKind.TIMER else row.computed.get(key)


def _timer(row: RecordRow, key: str) -> JsonObject:
    return row.computed.get(key) or {"totalMs": 0, "runningEntryId": None}


def _data(title: str, values: Mapping[str, Any], fields: FieldSpecs) -> dict[str, Any]:
    held = {TITLE_KEY: title, **values}
    return {key: held[key] for key in fields if key in held}


def _system(row: RecordRow, fields: FieldSpecs) -> dict[str, Any]:
    return {key: _written(row, spec.kind) for key, spec in fields.items() if spec.system}


def _written(row: RecordRow, kind: FieldKind) -> str | int | None:
    """The value the platform wrote for a field of a system kind."""
    match kind:
        case FieldKind.AUTO_NUMBER:
            return row.number
        case FieldKind.CREATED_AT:
            return wire_timestamp(row.created_at)
        case FieldKind.UPDATED_AT:
            return wire_timestamp(row.updated_at)
        case FieldKind.CREATED_BY:
            return None if row.created_by_user_id is None else str(row.created_by_user_id)
        case _:
            return None if row.updated_by_user_id is None else str(row.updated_by_user_id)


async def hidden_fields(work: UnitOfWork, actor: Actor, schema: Schema) -> frozenset[str]:
    """Keys of the computed fields whose values come from where the actor sees nothing.

    Over any number of relations; the statements depend on the fields alone. Nothing is hidden
    from owners and administrators.
    """
    if actor.role in MANAGERS or not any(_targets(schema.fields)):
        return frozenset()
    databases: dict[Id, FieldSpecs] = {schema.database_id: schema.fields}
    for _ in range(MAX_DEPTH):
        named = {target for fields in databases.values() for target, _ in _targets(fields)}
        unknown = named - databases.keys()
        if not unknown:
            break
        databases |= await fields_of_each(work, schema.workspace_id, unknown)
    closed = await _closed(work, actor, databases.keys() - {schema.database_id})
    return frozenset(_hidden(databases, closed)[schema.database_id])


async def unseen_fields(work: UnitOfWork, actor: Actor, schema: Schema) -> frozenset[str]:
    """Keys of the fields that a query of the actor must not speak of, lest its answer tells.

    What is hidden, and the relations to databases the actor does not see.
    """
    relations = {spec.key: spec.target_id for spec in schema.fields.values() if spec.relation}
    if actor.role in MANAGERS or not relations:
        return frozenset()
    closed = await _closed(work, actor, set(relations.values()))
    unseen = frozenset(key for key, target_id in relations.items() if target_id in closed)
    return unseen | await hidden_fields(work, actor, schema)


def foreign_fields(fields: FieldSpecs) -> set[str]:
    """Keys of all computed fields whose values come from other databases."""
    return with_formulas(fields, {key for _, key in _targets(fields)})


def _targets(fields: FieldSpecs) -> Iterator[tuple[Id, str]]:
    """The rollups and lookups of a database by key, each behind the database it reads."""
    for spec in fields.values():
        if spec.kind in FOLLOWING:
            relation = fields[spec.settings["relationFieldKey"]]
            yield relation.target_id, spec.key


def _hidden(
    databases: Mapping[Id, FieldSpecs], closed_ids: Collection[Id]
) -> Mapping[Id, Collection[str]]:
    hidden: dict[Id, set[str]] = defaultdict(set)
    while True:
        before = sum(map(len, hidden.values()))
        for database_id, fields in databases.items():
            for target_id, key in _targets(fields):
                read = fields[key].settings["targetFieldKey"]
                if target_id in closed_ids or read in hidden[target_id]:
                    hidden[database_id].add(key)
            hidden[database_id] = with_formulas(fields, hidden[database_id])
        if sum(map(len, hidden.values())) == before:
            return hidden


async def _closed(work: UnitOfWork, actor: Actor, database_ids: Collection[Id]) -> set[Id]:
    """The given databases that the actor does not see."""
    rows = await work.rows(
        closed_databases(actor).where(DATABASE.id == sa.any_(id_array(database_ids)))
    )
    return {row.id for row in rows}


def open_records(
    actor: Actor, record_ids: Iterable[Id], *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """These columns of the records among these in databases the actor sees, in the trash or not."""
    return (
        open_databases(actor, *columns)
        .join(record, record.c.database_id == DATABASE.id)
        .where(
            record.c.workspace_id == actor.workspace_id,
            record.c.id == sa.any_(id_array(record_ids)),
        )
    )
