"""Routes of a query to its records, and the statements of its groups and figures.

There are three routes: through all records, among few, or along an index. Counts say which one is
short. Whichever way a record is reached, what the side index has not answered exactly is asked of
the record itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa

from models.core.base import JsonObject
from models.core.filters.operands import Empty
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.records.rules.query import ordering
from models.data.records.rules.query.filters import Leaf
from models.data.records.rules.query.plan import MAX_GROUPS, MAX_ROWS, Query, shown_value
from models.data.records.rules.query.sql import Expression, filter_condition
from models.data.records.shapes import RecordGroup
from models.data.records.tables import record, record_index
from runtime.postgresql.schema import is_among

Position = Sequence[Any] | None
"""The start of a page: after the record with these sort values and this id."""


@dataclass(frozen=True, slots=True)
class Route:
    """`among` are the entries of a few records; without it and without `along` all are read."""

    among: Expression | None = None
    along: bool = False


def wanted_indexes(query: Query) -> list[FieldSpec]:
    """The fields whose index would spare this query records, and that have none."""
    asked = [leaf.field for leaf in query.required if _entries(leaf) is not None]
    asked += [column.field for column in query.order.columns[:1] if _orders(column)]
    return list({field.key: field for field in asked if field.index_id is None}.values())


def can_go_along(query: Query) -> bool:
    """True when an index has the records in the order of the first sort."""
    return any(column.field.index_ready and _orders(column) for column in query.order.columns[:1])


def candidates(schema: Schema, query: Query) -> list[Expression]:
    """Entries among which all records of the query are, one condition for each required test."""
    found: list[Expression] = []
    for leaf in query.required:
        condition = _entries(leaf)
        if leaf.field.index_ready and condition is not None:
            found.append(_mine(schema, leaf.field) & condition)
    return found


def _entries(leaf: Leaf) -> Expression | None:
    return (
        ordering.entry_condition(leaf.field, leaf.condition)
        if ordering.is_indexable(leaf.field)
        else None
    )


def _orders(column: ordering.Column) -> bool:
    return column.whole and ordering.order_column(column.field) is not None


def _mine(schema: Schema, field: FieldSpec) -> Expression:
    return (record_index.c.workspace_id == schema.workspace_id) & ordering.entries_of(field)


def count_up_to(entries: Expression, most: int) -> Expression:
    """The number of entries, counted no further than to `most`."""
    some = sa.select(sa.literal(1)).where(entries).limit(_rows(most)).subquery()
    return sa.select(sa.func.count()).select_from(some).scalar_subquery()


def _rows(count: int) -> Expression:
    """A limit the planner knows: it plans for a tenth of all rows when the number is unknown."""
    return sa.literal_column(str(count))


def _shown(schema: Schema) -> list[Expression]:
    """The columns that records are shown from, beyond what the schema says of all of them."""
    known = {"workspace_id", "database_id", "deleted_at"}
    if not any(field.computed for field in schema.fields.values()):
        known.add("computed")
    return [column for column in record.c if column.name not in known]


def matching(
    schema: Schema, query: Query, route: Route, answered: Sequence[Leaf] = ()
) -> list[Expression]:
    """The conditions of the records of a query, without tests that were answered already."""
    tests = [leaf for leaf in query.required if not any(leaf is one for one in answered)]
    conditions = [
        record.c.workspace_id == schema.workspace_id,
        record.c.database_id == schema.database_id,
        record.c.deleted_at.is_(None),
        *(filter_condition(leaf) for leaf in tests),
        *query.further,
    ]
    if not query.with_archived:
        conditions.append(record.c.archived.is_(False))
    if route.among is not None:
        ids = sa.select(record_index.c.record_id).where(route.among)
        conditions.append(is_among(record.c.id, ids))
    return conditions


def pages(
    schema: Schema, query: Query, route: Route, after: Position, most: int
) -> Iterator[sa.Select[Any]]:
    """Statements whose rows, one after the other, are the next `most` records."""
    if route.along:
        yield from _along(schema, query, after, most)
        return
    sorted_by = query.order.columns
    # A sort carries each record that it compares: beside its key only the id.
    columns = [record.c.id, *query.order.selected()] if sorted_by else _shown(schema)
    statement = sa.select(*columns).where(*matching(schema, query, route))
    statement = statement.order_by(*query.order.clauses)
    if after is not None:
        statement = statement.where(query.order.after(after))
    statement = statement.limit(_rows(most))
    if sorted_by:
        statement = _with_records(schema, query, statement)
    elif query.with_archived and route.among is None:
        statement = _merged(statement, most)
    yield statement


def _with_records(schema: Schema, query: Query, page: sa.Select[Any]) -> sa.Select[Any]:
    """The records of a sorted page, which has their ids and sort values."""
    first = page.subquery("first")
    sort_values = [value for value in first.c if value is not first.c.id]
    id_clause = first.c.id.desc() if query.order.descending else first.c.id.asc()
    clauses = map(ordering.Column.directed, query.order.columns, sort_values)
    return (
        sa.select(*_shown(schema), *sort_values)
        .join(first, record.c.id == first.c.id)
        .where(record.c.workspace_id == schema.workspace_id)
        .order_by(*clauses, id_clause)
    )


def _merged(newest: sa.Select[Any], most: int) -> sa.Select[Any]:
    """Archived records and others in one order: the table has each of them in it."""
    halves = [newest.where(record.c.archived.is_(archived)) for archived in (False, True)]
    both = sa.union_all(*halves).subquery("newest")
    return sa.select(both).order_by(both.c.created_at.desc(), both.c.id.desc()).limit(_rows(most))


def is_unpredictable(query: Query) -> bool:
    """True when the number of records of an order that pass the conditions is unknown."""
    return bool(query.further) or any(
        not leaf.field.index_ready or _entries(leaf) is None for leaf in query.required
    )


def sample(schema: Schema, query: Query, size: int) -> sa.Select[Any]:
    """The number of the first entries along the index that are of records the query finds."""
    first = query.order.columns[0]
    column = _ordered(first)
    ids = (
        sa.select(record_index.c.record_id)
        .where(_mine(schema, first.field), column.is_not(None))
        .order_by(column.desc() if first.descending else column.asc())
        .limit(_rows(size))
        .subquery("first")
    )
    return (
        sa.select(sa.func.count())
        .select_from(ids.join(record, record.c.id == ids.c.record_id))
        .where(*matching(schema, query, Route()))
    )


def _along(schema: Schema, query: Query, after: Position, most: int) -> Iterator[sa.Select[Any]]:
    """The filled and the empty values of the first sort, in their order."""
    first = query.order.columns[0]
    own = [leaf for leaf in query.required if leaf.field.key == first.field.key]
    bounds = [(leaf, predicate) for leaf in own if (predicate := _entries(leaf)) is not None]
    known = [_ordered(first)] if ordering.is_mirrored(first.field) else []
    answered = [leaf for leaf, _ in bounds if ordering.is_exact(leaf.condition)]
    start = (
        sa.select(*_shown(schema), *query.order.selected(*known))
        .select_from(record)
        .join(record_index, record_index.c.record_id == record.c.id)
        .where(
            *matching(schema, query, Route(), answered),
            _mine(schema, first.field),
            *(predicate for _, predicate in bounds),
        )
        .limit(_rows(most))
    )
    sought = {isinstance(leaf.condition, Empty) for leaf, _ in bounds}
    for blank in (True, False) if first.nulls_first else (False, True):
        begun = after is not None and (after[0] is None) == blank
        passed = after is not None and not begun and blank == first.nulls_first
        if passed or (not blank) in sought:
            continue
        yield (_blank if blank else _filled)(query, start, after if begun else None)


def _ordered(column: ordering.Column) -> Expression:
    found = ordering.order_column(column.field)
    assert found is not None, "routes along an index are for fields that have an order"
    return found


def _filled(query: Query, start: sa.Select[Any], after: Position) -> sa.Select[Any]:
    first, *others = query.order.columns
    column = _ordered(first)
    statement = start.where(column.is_not(None))
    if after is not None:
        key = ordering.order_key(first.field, first.read(after[0]))
        if others:
            beyond = column <= key if first.descending else column >= key
            statement = statement.where(beyond, query.order.after(after))
        else:
            here = sa.tuple_(column, record_index.c.record_id)
            there = sa.tuple_(key, sa.literal(after[-1], sa.Uuid()))
            statement = statement.where(here < there if first.descending else here > there)
    directed = column.desc() if first.descending else column.asc()
    return statement.order_by(directed, *_rest(query))


def _blank(query: Query, start: sa.Select[Any], after: Position) -> sa.Select[Any]:
    statement = start.where(ordering.blank_entries())
    if after is not None:
        here, last = record_index.c.record_id, sa.literal(after[-1], sa.Uuid())
        beyond = here < last if query.order.descending else here > last
        others = query.order.columns[1:]
        statement = statement.where(query.order.after(after) if others else beyond)
    return statement.order_by(*_rest(query))


def _rest(query: Query) -> list[Expression]:
    """The order of records that are alike in the first sort."""
    id_ = record_index.c.record_id
    directed = id_.desc() if query.order.descending else id_.asc()
    return [*(column.clause for column in query.order.columns[1:]), directed]


def figures_statement(schema: Schema, query: Query, route: Route) -> sa.Select[Any]:
    """One row: every figure over all records of the query."""
    inputs = _inputs(schema, query, route, grouped=False)
    return sa.select(*_figures(query, inputs)).select_from(inputs)


def figures_of(query: Query, row: object) -> JsonObject:
    """The figures of a row by their names."""
    assert row is not None, "an aggregate has a row even without records"
    return {
        figure.name: shown_value(getattr(row, f"figure_{place}"))
        for place, figure in enumerate(query.figures)
    }


def groups_statement(schema: Schema, query: Query, route: Route) -> sa.Select[Any]:
    """Every group before its inner groups, with its count and its figures."""
    inputs = _inputs(schema, query, route, grouped=True)
    values = [inputs.c[f"level_{place}"] for place in range(len(query.levels))]
    order = query.levels[0].order(values[0])
    is_outer: Expression = sa.literal(0)
    groups: list[Expression] = [*values]
    if len(values) > 1:
        # Only here: PostgreSQL does not compute grouping sets in parallel.
        is_outer = sa.func.grouping(*values)
        groups = [sa.func.grouping_sets(values[0], sa.tuple_(*values))]
        order += [is_outer.desc(), *query.levels[1].order(values[1])]
    return (
        sa.select(
            *values,
            is_outer.label("is_outer"),
            sa.func.count().label("records"),
            *_figures(query, inputs),
        )
        .group_by(*groups)
        .order_by(*order)
        .limit(MAX_ROWS + 1)
    )


def _figures(query: Query, inputs: sa.Subquery) -> list[Expression]:
    return [
        figure.of(inputs.c[f"value_{place}"], inputs.c[f"blank_{place}"]).label(f"figure_{place}")
        for place, figure in enumerate(query.figures)
    ]


def _inputs(schema: Schema, query: Query, route: Route, *, grouped: bool) -> sa.Subquery:
    """The values that groups and figures need of each record of the query.

    Computed below them: then an expression that holds bound values is written once.
    """
    columns: list[Expression] = []
    source: sa.FromClause = record
    for place, figure in enumerate(query.figures):
        value, blank = figure.inputs
        columns += [value.label(f"value_{place}"), blank.label(f"blank_{place}")]
    for place, level in enumerate(query.levels if grouped else ()):
        columns.append(level.value.label(f"level_{place}"))
        if level.elements is not None:
            source = source.outerjoin(level.elements, sa.true())
    found = sa.select(*columns).select_from(source).where(*matching(schema, query, route))
    return found.subquery("found")


class GroupRow(Protocol):
    """A group; its values and figures are columns numbered by place: `level_0`, `figure_0`."""

    is_outer: int
    records: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups an answer shows, and whether there are more."""

    groups: list[RecordGroup]
    truncated: bool


def groups_of(query: Query, rows: Sequence[GroupRow]) -> Groups:
    """The groups of these rows, inner ones inside their outer ones."""
    groups: list[RecordGroup] = []
    two_levels = len(query.levels) > 1
    for row in rows[:MAX_ROWS]:
        if not two_levels or row.is_outer:
            if len(groups) == MAX_GROUPS:
                return Groups(groups, truncated=True)
            groups.append(_group(query, row, 0, [] if two_levels else None))
        else:
            inner = groups[-1].groups
            assert inner is not None, "an outer group comes before its inner ones"
            inner.append(_group(query, row, 1, None))
    return Groups(groups, truncated=len(rows) > MAX_ROWS)


def _group(
    query: Query, row: GroupRow, place: int, groups: list[RecordGroup] | None
) -> RecordGroup:
    key, value = query.levels[place].shown(getattr(row, f"level_{place}"))
    return RecordGroup(
        key=key, value=value, count=row.records, aggregates=figures_of(query, row), groups=groups
    )
