"""Limits of what an actor sees: records, and fields computed from other databases."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, any_

from models.core.access.rules import MANAGERS, Actor
from models.core.base import Id
from models.data.fields.field_rows import fields_of_each
from models.data.fields.joins import DATABASE, closed_databases, open_databases
from models.data.fields.rules.fields import FieldSpecs, Schema
from models.data.formulas.rules.derived_fields import MAX_DEPTH
from models.data.records.queries.links import id_array
from models.data.records.rules.write.computed_order import FOLLOWING, with_formulas
from models.data.records.tables import record
from runtime.database import UnitOfWork


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
        closed_databases(actor).where(DATABASE.id == any_(id_array(database_ids)))
    )
    return {row.id for row in rows}


def open_records(
    actor: Actor, record_ids: Iterable[Id], *columns: ColumnElement[Any]
) -> Select[Any]:
    """These columns of the records among these in databases the actor sees, in the trash or not."""
    return (
        open_databases(actor, *columns)
        .join(record, record.c.database_id == DATABASE.id)
        .where(
            record.c.workspace_id == actor.workspace_id, record.c.id == any_(id_array(record_ids))
        )
    )
