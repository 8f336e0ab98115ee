"""Rows of databases and fields, and the parts of statements that join them."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from models.content.items.joins import live_item_of
from models.content.items.queries import closed_items, placed
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, Option
from models.data.fields.tables import database, field
from runtime.database import UnitOfWork
from runtime.postgresql.statements import PreparedStatement


class DatabaseRow(Protocol):
    """A database; one that is being copied has no item."""

    id: Id
    item_id: Id | None
    label: str
    record_layout: dict[str, Any]
    updated_at: datetime


DATABASE = database.c
"""The columns of databases in the statements that this module begins."""
FIELD = field.c
"""The columns of what `field_with_id` joins."""


def field_with_id(
    field_id: sa.ColumnElement[Any],
) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the field that a column names: `select(…).outerjoin(*field_with_id(…))`."""
    return field, field.c.id == field_id


def database_of(resource: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the database of a resource's rows, in the trash or not.

    To be spread: `select(…).join(*database_of(resource))`.
    """
    return database, _owns(resource)


def live_database_of(resource: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the database of a resource's rows and its item, unless it is in the trash."""
    return database.join(*live_item_of(database)), _owns(resource)


def _owns(resource: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(
        database.c.workspace_id == resource.c.workspace_id, database.c.id == resource.c.database_id
    )


def live_databases(
    workspace_id: Id | sa.ColumnElement[Id], *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """These columns of the databases outside the trash, of their items and of what is joined."""
    return (
        sa.select(*columns)
        .select_from(database)
        .join(*live_item_of(database))
        .where(database.c.workspace_id == workspace_id)
    )


def open_databases(actor: Actor, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """These columns of the databases that the actor sees, and of what is joined."""
    return (
        sa.select(*columns)
        .select_from(database)
        .where(
            database.c.workspace_id == actor.workspace_id,
            database.c.item_id.not_in(sa.select(closed_items(actor).c.id)),
        )
    )


def closed_databases(actor: Actor) -> sa.Select[Any]:
    """The ids of the databases that the actor does not see."""
    return sa.select(database.c.id).where(
        database.c.workspace_id == actor.workspace_id,
        database.c.item_id.in_(sa.select(closed_items(actor).c.id)),
    )


def placed_databases() -> sa.Select[Any]:
    """The start of a `PlacementOf`, for what belongs to a database."""
    return placed(database)


def item_of_database(
    workspace_id: Id | sa.ColumnElement[Id], database_id: Id | sa.ColumnElement[Id]
) -> sa.Select[Any]:
    """The item of a database, which may be a column of the enclosing statement."""
    return (
        sa.select(database.c.item_id)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .correlate_except(database)
    )


def fields_as_text() -> sa.ScalarSelect[Any]:
    """The fields of the enclosing statement's `database`, as JSON text that `read_fields` reads.

    For statements that read a row together with the fields of its database.
    """
    described = sa.func.json_build_object(
        *(part for name in _SPEC for part in (name, field.c[name]))
    )
    ordered = aggregate_order_by(described, field.c.position, field.c.key)
    return (
        sa.select(sa.cast(sa.func.json_agg(ordered), sa.Text))
        .where(
            field.c.workspace_id == database.c.workspace_id, field.c.database_id == database.c.id
        )
        .correlate(database)
        .scalar_subquery()
    )


def read_fields(text: str) -> FieldSpecs:
    """The fields that `fields_as_text` gave, as the rules see them."""
    return dict(_fields_of_text(text))


@lru_cache(maxsize=512)
def _fields_of_text(text: str) -> FieldSpecs:
    """Parsed once until the fields change: the text itself is the cache key."""
    rows = (
        SimpleNamespace(
            **{**row, "id": Id(row["id"]), "index_id": row["index_id"] and Id(row["index_id"])}
        )
        for row in json.loads(text)
    )
    return field_specs(cast("Iterator[FieldRow]", rows))


_SPEC = (
    "id",
    "key",
    "label",
    "kind",
    "required",
    "default_value",
    "options",
    "settings",
    "position",
    "index_id",
    "index_ready",
)


class FieldRow(Protocol):
    """The columns of a field that the rules see."""

    id: Id
    key: str
    label: str
    kind: str
    required: bool
    default_value: str | None
    options: list[dict[str, Any]]
    settings: dict[str, Any]
    position: float
    index_id: Id | None
    index_ready: bool


def field_specs(rows: Iterable[FieldRow]) -> FieldSpecs:
    """Rows of the field table as the rules see them."""
    return {row.key: field_spec(row) for row in rows}


def specs_of_rows(rows: Iterable[Mapping[str, Any]]) -> FieldSpecs:
    """Rows of the field table with ids as text, as a bundle has them; no side index is known."""
    known = {"index_id": None, "index_ready": False}
    free = {"default_value": None}
    described = (SimpleNamespace(**{**free, **row, **known, "id": Id(row["id"])}) for row in rows)
    return field_specs(cast("Iterator[FieldRow]", described))


def field_spec(row: FieldRow) -> FieldSpec:
    """One row of the field table as the rules see it."""
    return FieldSpec(
        id=row.id,
        key=row.key,
        label=row.label,
        kind=FieldKind(row.kind),
        required=row.required,
        default=row.default_value,
        options=tuple(Option(**option) for option in row.options),
        settings=row.settings,
        position=row.position,
        index_id=row.index_id,
        index_ready=row.index_ready,
    )


_FIELDS = PreparedStatement(
    sa.select(fields_as_text()).where(
        database.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        database.c.id == sa.bindparam("database_id", type_=sa.Uuid),
    )
)


async def find_fields(work: UnitOfWork, workspace_id: Id, database_id: Id) -> FieldSpecs:
    """The fields of a database, in the trash or not; none when there is no such database."""
    named = {"workspace_id": workspace_id, "database_id": database_id}
    row = await _FIELDS.first(work, named)
    return {} if row is None else read_fields(row[0])


async def fields_of_each(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> dict[Id, FieldSpecs]:
    """The fields of each of these databases, in the trash or not."""
    rows = await _OF_EACH.rows(work, {"workspace_id": workspace_id, "ids": list(database_ids)})
    by_database = defaultdict(list)
    for row in rows:
        by_database[row.database_id].append(row)
    return {each: field_specs(by_database[each]) for each in database_ids}


_OF_EACH = PreparedStatement(
    sa.select(field).where(
        field.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        field.c.database_id == sa.func.any(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))),
    )
)


async def fields_by_database(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> dict[Id, FieldSpecs]:
    """The fields of each of these databases that exists outside the trash."""
    rows = await work.rows(
        sa.select(database.c.id, fields_as_text().label("fields"))
        .join(*live_item_of(database))
        .where(
            database.c.workspace_id == workspace_id,
            database.c.id.in_(sorted(database_ids)),
        )
    )
    return {row.id: read_fields(row.fields) for row in rows}


@dataclass(frozen=True, slots=True)
class FormerKeys:
    """The keys that the fields of a database had: each until when, and the key that it is now."""

    present: Collection[str]
    former: Sequence[tuple[str, datetime, str]] = ()

    def at(self, moment: datetime) -> Mapping[str, str]:
        """The present key of each field that had another key at a moment, by that key."""
        keys = {key: now for key, _, now in self.former if key not in self.present}
        then = sorted((one for one in self.former if one[1] > moment), key=itemgetter(1))
        keys |= {key: now for key, _, now in reversed(then)}
        return {key: now for key, now in keys.items() if key != now}


async def former_keys(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> Mapping[Id, FormerKeys]:
    """The former keys of the fields of each of these databases."""
    columns = (field.c.database_id, field.c.key, field.c.former_keys)
    rows = await work.rows(
        sa.select(*columns).where(
            field.c.workspace_id == workspace_id, field.c.database_id.in_(sorted(database_ids))
        )
    )
    present: defaultdict[Id, set[str]] = defaultdict(set)
    former: defaultdict[Id, list[tuple[str, datetime, str]]] = defaultdict(list)
    for row in rows:
        present[row.database_id].add(row.key)
        former[row.database_id] += (
            (old["key"], datetime.fromisoformat(old["until"]), row.key) for old in row.former_keys
        )
    return {id_: FormerKeys(present[id_], former[id_]) for id_ in database_ids}


async def field_kind(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> FieldKind | None:
    """The kind of a field; None when there is no such field."""
    kind = await work.scalar(
        sa.select(field.c.kind).where(
            field.c.workspace_id == workspace_id,
            field.c.database_id == database_id,
            field.c.key == field_key,
        )
    )
    return None if kind is None else FieldKind(kind)


class RelationSettings(Protocol):
    """The key and the settings of a relation field."""

    key: str
    settings: dict[str, Any]


class FollowedRelation(RelationSettings, Protocol):
    """A relation field, once for each rollup or lookup that follows it to `target`."""

    id: Id
    label: str
    database_id: Id
    follower: str | None
    target: str


_RELATION = field.alias("relation")
_FOLLOWER = field.alias("follower")
_FOLLOWING = [FieldKind.ROLLUP.value, FieldKind.LOOKUP.value]
_FOLLOWED = PreparedStatement(
    sa.select(
        _RELATION.c.id,
        _RELATION.c.key,
        _RELATION.c.label,
        _RELATION.c.database_id,
        _RELATION.c.settings,
        _FOLLOWER.c.key.label("follower"),
        _FOLLOWER.c.settings["targetFieldKey"].astext.label("target"),
    )
    .outerjoin(
        _FOLLOWER,
        sa.and_(
            _FOLLOWER.c.workspace_id == _RELATION.c.workspace_id,
            _FOLLOWER.c.database_id == _RELATION.c.database_id,
            _FOLLOWER.c.kind == sa.any_(sa.literal(_FOLLOWING, sa.ARRAY(sa.Text))),
            _FOLLOWER.c.settings["relationFieldKey"].astext == _RELATION.c.key,
        ),
    )
    .where(
        _RELATION.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _RELATION.c.id == sa.func.any(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))),
    )
    .order_by(_RELATION.c.id, _FOLLOWER.c.key),
    FollowedRelation,
)
_SETTINGS = PreparedStatement(
    sa.select(field.c.key, field.c.settings).where(
        field.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        field.c.id == sa.bindparam("id", type_=sa.Uuid),
    ),
    RelationSettings,
)


async def followed_relations(
    work: UnitOfWork, workspace_id: Id, field_ids: Collection[Id]
) -> Sequence[FollowedRelation]:
    """These relation fields with what follows them, in the order of their ids."""
    return await _FOLLOWED.rows(work, {"workspace_id": workspace_id, "ids": list(field_ids)})


async def relation_settings(
    work: UnitOfWork, workspace_id: Id, field_id: Id
) -> RelationSettings | None:
    """The key and the settings of a relation field; None when it is gone."""
    return await _SETTINGS.first(work, {"workspace_id": workspace_id, "id": field_id})
