"""The statements behind the groups and figures of a query, and what their rows say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import FromClause, Select, Subquery, func, literal, select, true, tuple_

from models.core.base import JsonObject
from models.data.fields.rules.fields import Schema
from models.data.records.rules.query.aggregation import shown_value
from models.data.records.rules.query.extraction import Expression
from models.data.records.rules.query.grouping import MAX_GROUPS, MAX_ROWS
from models.data.records.rules.query.query import Query
from models.data.records.rules.query.routes import Route, matching
from models.data.records.shapes import RecordGroup
from models.data.records.tables import record


def figures_statement(schema: Schema, query: Query, route: Route) -> Select[Any]:
    """One row: every figure over all records of the query."""
    inputs = _inputs(schema, query, route, grouped=False)
    return select(*_figures(query, inputs)).select_from(inputs)


def figures_of(query: Query, row: object) -> JsonObject:
    """The figures of a row by their names."""
    assert row is not None, "an aggregate has a row even without records"
    return {
        figure.name: shown_value(getattr(row, f"figure_{place}"))
        for place, figure in enumerate(query.figures)
    }


def groups_statement(schema: Schema, query: Query, route: Route) -> Select[Any]:
    """Every group before its inner groups, with its count and its figures."""
    inputs = _inputs(schema, query, route, grouped=True)
    values = [inputs.c[f"level_{place}"] for place in range(len(query.levels))]
    order = query.levels[0].order(values[0])
    is_outer: Expression = literal(0)
    groups: list[Expression] = [*values]
    if len(values) > 1:
        # Only here: PostgreSQL does not compute grouping sets in parallel.
        is_outer = func.grouping(*values)
        groups = [func.grouping_sets(values[0], tuple_(*values))]
        order += [is_outer.desc(), *query.levels[1].order(values[1])]
    return (
        select(
            *values,
            is_outer.label("is_outer"),
            func.count().label("records"),
            *_figures(query, inputs),
        )
        .group_by(*groups)
        .order_by(*order)
        .limit(MAX_ROWS + 1)
    )


def _figures(query: Query, inputs: Subquery) -> list[Expression]:
    return [
        figure.of(inputs.c[f"value_{place}"], inputs.c[f"blank_{place}"]).label(f"figure_{place}")
        for place, figure in enumerate(query.figures)
    ]


def _inputs(schema: Schema, query: Query, route: Route, *, grouped: bool) -> Subquery:
    """The values that groups and figures need of each record of the query.

    Computed below them: then an expression that holds bound values is written once.
    """
    columns: list[Expression] = []
    source: FromClause = record
    for place, figure in enumerate(query.figures):
        value, blank = figure.inputs
        columns += [value.label(f"value_{place}"), blank.label(f"blank_{place}")]
    for place, level in enumerate(query.levels if grouped else ()):
        columns.append(level.value.label(f"level_{place}"))
        if level.elements is not None:
            source = source.outerjoin(level.elements, true())
    found = select(*columns).select_from(source).where(*matching(schema, query, route))
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
