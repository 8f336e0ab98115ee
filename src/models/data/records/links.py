"""Reading links: what relation fields show, and the rollups and lookups over them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rows import DATABASE, followed_relations, open_databases, relation_settings
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, Schema
from models.data.fields.rules.settings import Aggregate
from models.data.records.rules.links import Side, make_side, side_of
from models.data.records.rules.query.plan import Figure, shown_value
from models.data.records.rules.query.sql import empty, extract, json_of
from models.data.records.tables import record, record_link
from runtime.database import UnitOfWork

MAX_SHOWN = 1_000
"""Links of one field that a record shows; the other side of a relation may hold more."""

LinksOf = Mapping[Id, Mapping[str, Sequence[Id]]]
"""Record → key of a relation field → the records it points at, in order."""

Expression = sa.ColumnElement[Any]


def sides_of(fields: FieldSpecs, keys: Collection[str] | None = None) -> list[Side]:
    """The sides of the relation fields among these keys (None: of all)."""
    return [
        side_of(spec)
        for key, spec in fields.items()
        if spec.relation and (keys is None or key in keys)
    ]


def seen_links(
    workspace_id: Id,
    sides: Collection[Side],
    own_ids: Expression | None,
    other_ids: Expression | None = None,
) -> sa.CompoundSelect[Any]:
    """The links these sides show: `field_id`, `own`, `other`, `place`, and `forward`.

    `own_ids` and `other_ids` are arrays the ends must be among; None asks nothing of an end.
    """
    ways = [
        (True, record_link.c.record_id, record_link.c.target_id, record_link.c.position),
        (False, record_link.c.target_id, record_link.c.record_id, record_link.c.target_position),
    ]
    parts = []
    for forward, own_end, other_end, place in ways:
        ids = [side.field_id for side in sides if side.reads(forward)]
        if not ids:
            continue
        ends = [
            end == sa.any_(end_ids)
            for end, end_ids in ((own_end, own_ids), (other_end, other_ids))
            if end_ids is not None
        ]
        parts.append(
            sa.select(
                record_link.c.workspace_id,
                record_link.c.field_id,
                own_end.label("own"),
                other_end.label("other"),
                place.label("place"),
                sa.literal(forward).label("forward"),
            ).where(
                record_link.c.workspace_id == workspace_id,
                record_link.c.field_id == sa.any_(sa.literal(ids, sa.ARRAY(sa.Uuid))),
                *ends,
            )
        )
    return sa.union_all(*parts)


def at_the_end(end: Expression, links: sa.FromClause, *columns: Expression) -> sa.FromClause:
    """These columns of the record at one end of a link, to be joined; none if it is in the trash.

    Looked up link by link, even if PostgreSQL misjudges the tables: just filled they count as
    small, and it would rather go through all records for each of the links.
    """
    return (
        sa.select(*columns)
        .where(
            record.c.workspace_id == links.c.workspace_id,
            record.c.id == end,
            record.c.deleted_at.is_(None),
        )
        .limit(1)
        .lateral("at_the_end")
    )


def id_array(ids: Iterable[Id]) -> Expression:
    """Ids as an array a column is compared with."""
    return sa.literal(sorted(ids), sa.ARRAY(sa.Uuid))


@dataclass(frozen=True, slots=True)
class Shown:
    """A record at the other end of a link."""

    id: Id
    title: str
    database_id: Id


LinksShown = Mapping[Id, Mapping[str, Sequence[Shown]]]
"""Record → key of a relation field → the records it shows, in order."""


async def shown_links(
    work: UnitOfWork, actor: Actor, schema: Schema, record_ids: Collection[Id], sides: list[Side]
) -> LinksShown:
    """The links these sides show the actor, in one statement: none in the trash or out of sight.

    At most `MAX_SHOWN` per record and field, in order.
    """
    if not sides or not record_ids:
        return {}
    links = seen_links(schema.workspace_id, sides, id_array(record_ids)).subquery("link")
    place = sa.func.row_number().over(
        partition_by=(links.c.field_id, links.c.forward, links.c.own),
        order_by=(links.c.place, links.c.other),
    )
    end = at_the_end(links.c.other, links, record.c.title, record.c.database_id)
    ranked = (
        sa.select(links, end.c.title, end.c.database_id, place.label("rank"))
        .join(end, sa.true())
        .where(end.c.database_id.in_(open_databases(actor, DATABASE.id)))
        .subquery("ranked")
    )
    rows = await work.rows(
        sa.select(ranked)
        .where(ranked.c.rank <= MAX_SHOWN)
        .order_by(ranked.c.own, ranked.c.place, ranked.c.other),
        of=_ShownLink,
    )
    return _by_key(rows, sides)


class _ShownLink(Protocol):
    """A link as one of its sides shows it: `own` record, `other` record."""

    field_id: Id
    forward: bool
    own: Id
    other: Id
    title: str
    database_id: Id


def _by_key(rows: Iterable[_ShownLink], sides: list[Side]) -> LinksShown:
    readers: dict[tuple[Id, bool], list[str]] = defaultdict(list)
    for side in sides:
        for forward, reads in ((True, side.forward), (False, side.backward)):
            if reads:
                readers[side.field_id, forward].append(side.key)
    # A dictionary per field: a symmetric relation reads the link of a record to itself twice.
    links: dict[Id, dict[str, dict[Id, Shown]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        for key in readers[row.field_id, row.forward]:
            links[row.own][key].setdefault(row.other, Shown(row.other, row.title, row.database_id))
    return {
        own: {key: list(others.values())[:MAX_SHOWN] for key, others in by_key.items()}
        for own, by_key in links.items()
    }


async def links_of(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    record_ids: Collection[Id],
    keys: Collection[str],
) -> LinksOf:
    """The records that relation fields of these records show the actor, in one statement."""
    shown = await shown_links(work, actor, schema, record_ids, sides_of(schema.fields, keys))
    return {
        own: {key: [each.id for each in others] for key, others in by_key.items()}
        for own, by_key in shown.items()
    }


@dataclass(frozen=True, slots=True)
class Follower:
    """A rollup or lookup that follows a relation to the field `target`."""

    key: str
    target: str


@dataclass(frozen=True, slots=True)
class Incoming:
    """A relation field that points at a database, and what follows it in its own."""

    id: Id
    label: str
    side: Side
    database_id: Id
    inverse_id: Id
    restricts: bool
    followers: tuple[Follower, ...]

    def faces(self, spec: FieldSpec) -> bool:
        """True when it shows the links of this field from their other end."""
        return spec.relation and self.inverse_id == spec.id


async def incoming_relations(work: UnitOfWork, schema: Schema) -> list[Incoming]:
    """The relation fields that point at a database, its own included, in one statement."""
    ids = [spec.inverse_id for spec in schema.fields.values() if spec.relation]
    if not ids:
        return []
    rows = await followed_relations(work, schema.workspace_id, ids)
    followers: dict[Id, list[Follower]] = defaultdict(list)
    for row in rows:
        if row.follower is not None:
            followers[row.id].append(Follower(row.follower, row.target))
    return [
        Incoming(
            id=row.id,
            label=row.label,
            side=make_side(row.id, row.key, row.settings),
            database_id=row.database_id,
            inverse_id=Id(row.settings["inverseFieldId"]),
            restricts=row.settings.get("onDelete") == "restrict",
            followers=tuple(followers[row.id]),
        )
        for row in {row.id: row for row in rows}.values()
    ]


async def relation_side(work: UnitOfWork, workspace_id: Id, field_id: Id) -> Side | None:
    """The side of a relation field by its id; None when it is gone."""
    found = await relation_settings(work, workspace_id, field_id)
    return None if found is None else make_side(field_id, found.key, found.settings)


MAX_LOOKED_UP = 100
"""Values of one lookup of one record."""
MAX_LOOKUP_BYTES = 200_000

_COUNTS = frozenset(
    {
        Aggregate.COUNT,
        Aggregate.COUNT_EMPTY,
        Aggregate.COUNT_FILLED,
        Aggregate.COUNT_UNIQUE,
        Aggregate.CHECKED,
        Aggregate.UNCHECKED,
    }
)
"""Aggregates that are 0 where nothing is linked; nothing has no sum, average or percentage."""


async def linked_values(
    work: UnitOfWork, schema: Schema, spec: FieldSpec, targets: FieldSpecs, ids: Collection[Id]
) -> dict[Id, Any]:
    """The value of a rollup or lookup for each of these records, in one statement.

    `targets` are the fields of the related database.
    """
    relation = schema.fields[spec.settings["relationFieldKey"]]
    target = targets[spec.settings["targetFieldKey"]]
    if spec.kind is FieldKind.LOOKUP:
        rows = await work.rows(_looked_up(_seen(schema, relation, ids), target))
        found = {row.own: _flat(row.value) for row in rows}
        return {each: found.get(each, []) for each in ids}
    op = Aggregate(spec.settings["aggregate"])
    rows = await work.rows(_rolled_up(_seen(schema, relation, ids), target, op))
    nothing = 0 if op in _COUNTS else None
    figures = {row.own: shown_value(row.value) for row in rows}
    return {each: figures.get(each, nothing) for each in ids}


def _seen(schema: Schema, relation: FieldSpec, ids: Collection[Id]) -> sa.FromClause:
    """The links these records show in a relation field."""
    side = side_of(relation)
    links = seen_links(schema.workspace_id, [side], id_array(ids)).subquery("seen")
    if not (side.forward and side.backward):
        return links
    # The link of a record to itself is seen from both of its ends.
    once = (links.c.workspace_id, links.c.own, links.c.other)
    return (
        sa.select(*once, sa.func.min(links.c.place).label("place")).group_by(*once).subquery("once")
    )


def _rolled_up(links: sa.FromClause, target: FieldSpec, op: Aggregate) -> sa.Select[Any]:
    figure = Figure(target.key, op, target)
    value, blank = figure.inputs
    if op is Aggregate.COUNT_UNIQUE:
        value = sa.case((sa.not_(blank), _json(target)))
    end = at_the_end(links.c.other, links, value.label("value"), blank.label("blank"))
    return (
        sa.select(links.c.own, figure.of(end.c.value, end.c.blank).label("value"))
        .join(end, sa.true())
        .group_by(links.c.own)
    )


def _looked_up(links: sa.FromClause, target: FieldSpec) -> sa.Select[Any]:
    """The first values that are not empty, as far as they are of a size to keep."""
    end = at_the_end(
        links.c.other, links, _json(target).label("value"), empty(target).label("blank")
    )
    order = (links.c.place, links.c.other)
    size = sa.func.sum(sa.func.octet_length(sa.cast(end.c.value, sa.Text)))
    ranked = (
        sa.select(
            links.c.own,
            end.c.value,
            sa.func.row_number().over(partition_by=links.c.own, order_by=order).label("rank"),
            size.over(partition_by=links.c.own, order_by=order).label("size"),
        )
        .join(end, sa.true())
        .where(sa.not_(end.c.blank))
        .subquery("ranked")
    )
    values = sa.func.jsonb_agg(aggregate_order_by(ranked.c.value, ranked.c.rank))
    return (
        sa.select(ranked.c.own, sa.type_coerce(values, JSONB).label("value"))
        .where(ranked.c.rank <= MAX_LOOKED_UP, ranked.c.size <= MAX_LOOKUP_BYTES)
        .group_by(ranked.c.own)
    )


def _json(target: FieldSpec) -> sa.ColumnElement[Any]:
    """The value of a field as JSON has it."""
    if target.title:
        return sa.func.to_jsonb(record.c.title)
    if not target.system:
        return json_of(target)
    if target.kind in {FieldKind.CREATED_AT, FieldKind.UPDATED_AT}:
        wire = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
        return sa.func.to_jsonb(
            sa.func.to_char(sa.func.timezone("UTC", extract(target).expression), wire)
        )
    return sa.func.to_jsonb(extract(target).expression)


def _flat(values: Iterable[Any]) -> list[Any]:
    """The values of lists one by one: options of several records are options."""
    flat: list[Any] = []
    for value in values:
        flat.extend(value if isinstance(value, list) else [value])
    return flat[:MAX_LOOKED_UP]
