"""Rollups and lookups: what records take from those they are related to, aggregated in SQL."""

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Text,
    case,
    cast,
    func,
    not_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from models.core.base import Id
from models.data.fields.rules.aggregates import Aggregate
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.records.queries.links import at_the_end, id_array, seen_links
from models.data.records.rules.link.sides import side_of
from models.data.records.rules.query.aggregation import Figure, shown_value
from models.data.records.rules.query.extraction import extract, json_of
from models.data.records.rules.query.predicates import empty
from models.data.records.tables import record
from runtime.database import UnitOfWork

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


def _seen(schema: Schema, relation: FieldSpec, ids: Collection[Id]) -> FromClause:
    """The links these records show in a relation field."""
    side = side_of(relation)
    seen = seen_links(schema.workspace_id, [side], id_array(ids)).subquery("seen")
    if not (side.forward and side.backward):
        return seen
    # The link of a record to itself is seen from both of its ends.
    once = (seen.c.workspace_id, seen.c.own, seen.c.other)
    return select(*once, func.min(seen.c.place).label("place")).group_by(*once).subquery("once")


def _rolled_up(links: FromClause, target: FieldSpec, op: Aggregate) -> Select[Any]:
    figure = Figure(target.key, op, target)
    value, blank = figure.inputs
    if op is Aggregate.COUNT_UNIQUE:
        value = case((not_(blank), _json(target)))
    end = at_the_end(links.c.other, links, value.label("value"), blank.label("blank"))
    return (
        select(links.c.own, figure.of(end.c.value, end.c.blank).label("value"))
        .join(end, true())
        .group_by(links.c.own)
    )


def _looked_up(links: FromClause, target: FieldSpec) -> Select[Any]:
    """The first values that are not empty, as far as they are of a size to keep."""
    end = at_the_end(
        links.c.other, links, _json(target).label("value"), empty(target).label("blank")
    )
    order = (links.c.place, links.c.other)
    size = func.sum(func.octet_length(cast(end.c.value, Text)))
    ranked = (
        select(
            links.c.own,
            end.c.value,
            func.row_number().over(partition_by=links.c.own, order_by=order).label("rank"),
            size.over(partition_by=links.c.own, order_by=order).label("size"),
        )
        .join(end, true())
        .where(not_(end.c.blank))
        .subquery("ranked")
    )
    values = func.jsonb_agg(aggregate_order_by(ranked.c.value, ranked.c.rank))
    return (
        select(ranked.c.own, type_coerce(values, JSONB).label("value"))
        .where(ranked.c.rank <= MAX_LOOKED_UP, ranked.c.size <= MAX_LOOKUP_BYTES)
        .group_by(ranked.c.own)
    )


def _json(target: FieldSpec) -> ColumnElement[Any]:
    """The value of a field as JSON has it."""
    if target.title:
        return func.to_jsonb(record.c.title)
    if not target.system:
        return json_of(target)
    if target.kind in {FieldKind.CREATED_AT, FieldKind.UPDATED_AT}:
        wire = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
        return func.to_jsonb(func.to_char(func.timezone("UTC", extract(target).expression), wire))
    return func.to_jsonb(extract(target).expression)


def _flat(values: Iterable[Any]) -> list[Any]:
    """The values of lists one by one: options of several records are options."""
    flat: list[Any] = []
    for value in values:
        flat.extend(value if isinstance(value, list) else [value])
    return flat[:MAX_LOOKED_UP]
