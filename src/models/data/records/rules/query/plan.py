"""Queries read into their parts: conditions, order, groups, figures, fields to show."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.core.filters.grammar import LISTS, AllOf, ValueForm
from models.core.problems import an
from models.core.values import InvalidValueError, text
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, no_field
from models.data.fields.rules.settings import Aggregate, usable_aggregates, zone
from models.data.fields.rules.values import value_form
from models.data.records.rules.query import sql
from models.data.records.rules.query.filters import Leaf, RecordFilter, read_filter
from models.data.records.rules.query.ordering import ENTRY_TEXT, Order, ordered_value, read_order
from models.data.records.shapes import Aggregation, GroupBy, RecordQuery
from runtime.clock import wire_timestamp
from runtime.errors import Detail, ValidationError

_LONGEST_WHOLE = 10**21
"""From here on a whole number is written with an exponent, as JavaScript does, if a double has its
digits."""

_OPAQUE = LISTS | {ValueForm.OPAQUE}
"""Forms whose values are counted, but not told apart."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One aggregate under its name in the answer; a count may be of no field."""

    name: str
    op: Aggregate
    field: FieldSpec | None

    @property
    def inputs(self) -> tuple[sql.Expression, sql.Expression]:
        """The expressions it needs of each record: the value, and a test that it is empty."""
        if self.field is None:
            return sa.null(), sa.false()
        return _figure_value(self.field, self.op), sql.empty(self.field)

    def of(self, value: sql.Expression, blank: sql.Expression) -> sql.Expression:
        """The figure over these columns of all records."""
        return _FIGURES[self.op](value, blank)


def read_aggregates(aggregates: Sequence[Aggregation], fields: FieldSpecs) -> tuple[Figure, ...]:
    """The figures a client asked for. Raises `ValidationError` at `aggregates.<place>`."""
    figures: dict[str, Figure] = {}
    for place, aggregate in enumerate(aggregates):
        figure = _figure(aggregate, fields, f"aggregates.{place}")
        if figure.name in figures:
            raise ValidationError.at(
                f"aggregates.{place}.as", f"{figure.name} is the name of an earlier aggregate"
            )
        figures[figure.name] = figure
    return tuple(figures.values())


def _figure(aggregate: Aggregation, fields: FieldSpecs, path: str) -> Figure:
    if aggregate.field is None:
        if aggregate.op is not Aggregate.COUNT:
            raise ValidationError.at(f"{path}.field", "is required: only count needs no field")
        return Figure(aggregate.name or "count", aggregate.op, None)
    field = fields.get(aggregate.field)
    if field is None:
        raise ValidationError.at(f"{path}.field", no_field(aggregate.field, fields))
    usable = _usable(field)
    if aggregate.op not in usable:
        raise ValidationError.at(
            f"{path}.op",
            f"must be an aggregate of {an(field.kind)} field: {', '.join(usable)}",
        )
    return Figure(aggregate.name or f"{aggregate.op}_{field.key}", aggregate.op, field)


def _usable(field: FieldSpec) -> list[Aggregate]:
    form = value_form(field)
    return [
        aggregate
        for aggregate in usable_aggregates(form)
        if aggregate is not Aggregate.COUNT_UNIQUE or form not in _OPAQUE
    ]


def _figure_value(field: FieldSpec, op: Aggregate) -> sql.Expression:
    form = value_form(field)
    if form in _OPAQUE:
        return sa.null()
    value = sql.extract(field).expression
    if form is not ValueForm.TEXT:
        return value
    shown = value if op is Aggregate.COUNT_UNIQUE else sa.func.left(value, ENTRY_TEXT)
    return sa.func.nullif(shown, "").collate("C")


def _share(part: sql.Expression) -> sql.Expression:
    """Percent of the records; NULL where there are none."""
    return (
        100 * sa.cast(sa.func.count().filter(part), sa.Float) / sa.func.nullif(sa.func.count(), 0)
    )


def _median(value: sql.Expression) -> sql.Expression:
    """The mean of the two values in the middle, in decimals: percentile_cont is of doubles."""
    middle = sa.func.percentile_disc(0.5)
    return (middle.within_group(value) + middle.within_group(value.desc())) / 2


_FIGURES: dict[Aggregate, Callable[[sql.Expression, sql.Expression], sql.Expression]] = {
    Aggregate.COUNT: lambda _value, _blank: sa.func.count(),
    Aggregate.COUNT_EMPTY: lambda _value, blank: sa.func.count().filter(blank),
    Aggregate.COUNT_FILLED: lambda _value, blank: sa.func.count().filter(sa.not_(blank)),
    Aggregate.COUNT_UNIQUE: lambda value, _blank: sa.func.count(sa.distinct(value)),
    Aggregate.PERCENT_EMPTY: lambda _value, blank: _share(blank),
    Aggregate.PERCENT_FILLED: lambda _value, blank: _share(sa.not_(blank)),
    Aggregate.SUM: lambda value, _blank: sa.func.sum(value),
    Aggregate.AVG: lambda value, _blank: sa.func.avg(value),
    Aggregate.MIN: lambda value, _blank: sa.func.min(value),
    Aggregate.MAX: lambda value, _blank: sa.func.max(value),
    Aggregate.MEDIAN: lambda value, _blank: _median(value),
    Aggregate.RANGE: lambda value, _blank: sa.func.max(value) - sa.func.min(value),
    Aggregate.STDDEV: lambda value, _blank: sa.func.stddev_samp(value),
    Aggregate.EARLIEST: lambda value, _blank: sa.func.min(value),
    Aggregate.LATEST: lambda value, _blank: sa.func.max(value),
    Aggregate.CHECKED: lambda value, _blank: sa.func.count().filter(value),
    Aggregate.UNCHECKED: lambda value, _blank: sa.func.count().filter(sa.not_(value)),
}


def shown_value(value: object) -> object:
    """A value from the database as JSON has it."""
    if isinstance(value, Decimal):
        nearest = float(value)
        is_whole = value == value.to_integral_value()
        is_short = abs(value) >= _LONGEST_WHOLE and Decimal(repr(nearest)) == value
        return int(value) if is_whole and not is_short else nearest
    return wire_timestamp(value) if isinstance(value, datetime) else value


MAX_GROUPS = 200
"""Groups of the first level that an answer shows."""
MAX_ROWS = 1_000
"""Groups of both levels that an answer shows."""

_DATES = frozenset({ValueForm.DAY, ValueForm.MOMENT})
_ELEMENTS = frozenset({ValueForm.OPTIONS, ValueForm.USERS, ValueForm.FILES})
_UNGROUPED = frozenset({ValueForm.OPAQUE, ValueForm.VALUES})


@dataclass(frozen=True, slots=True)
class Level:
    """One level of groups: `value` is what the records of a group have in common."""

    field: FieldSpec
    granularity: str | None
    descending: bool
    value: sql.Expression
    elements: sa.FromClause | None = None
    """The rows to join to a record, one for each of its values."""

    def order(self, value: sql.Expression) -> list[sql.Expression]:
        """The order of the groups, given the column that holds their value."""
        columns = [value]
        if value_form(self.field) in {ValueForm.OPTION, ValueForm.OPTIONS}:
            keys = sa.literal(list(self.field.option_keys), sa.ARRAY(sa.Text))
            columns = [sa.func.array_position(keys, value), value]
        return [sa.nulls_last(one.desc() if self.descending else one.asc()) for one in columns]

    def shown(self, value: object) -> tuple[str, object]:
        """The key and the value of a group on the wire."""
        if value is None:
            return "", None
        if self.granularity is not None:
            return _period_key(str(value), self.granularity), value
        if isinstance(value, bool):
            return str(value).lower(), value
        shown = shown_value(value)
        return str(shown), shown


def read_groups(
    group_by: Sequence[GroupBy], fields: FieldSpecs, timezone: str | None
) -> tuple[Level, ...]:
    """The levels a client asked for. Raises `ValidationError` at `groupBy.<place>`."""
    levels = [
        _level(group, fields, timezone, f"groupBy.{place}") for place, group in enumerate(group_by)
    ]
    if len({level.field.key for level in levels}) < len(levels):
        raise ValidationError.at("groupBy.1.field", "is already the field of the first level")
    return tuple(levels)


def can_be_grouped(field: FieldSpec) -> bool:
    """True for a field whose values tell records apart."""
    return value_form(field) not in _UNGROUPED


def _level(group: GroupBy, fields: FieldSpecs, timezone: str | None, path: str) -> Level:
    field = fields.get(group.field)
    if field is None:
        raise ValidationError.at(f"{path}.field", no_field(group.field, fields))
    form = value_form(field)
    if not can_be_grouped(field):
        raise ValidationError.at(
            f"{path}.field", f"cannot be grouped by: it is {an(field.kind)} field"
        )
    if form not in _DATES and group.granularity is not None:
        raise ValidationError.at(f"{path}.granularity", "is only for dates")
    descending = group.direction == "desc"
    if form in _DATES:
        granularity = group.granularity or "day"
        first_day = _first_day(field, granularity, timezone or field.timezone)
        return Level(field, granularity, descending, first_day)
    if form in _ELEMENTS:
        elements = _elements(field)
        return Level(field, None, descending, elements.c.value.collate("C"), elements)
    if form is ValueForm.RECORDS:
        targets = sql.linked_rows(field)
        return Level(field, None, descending, sa.cast(targets.c.id, sa.Text).collate("C"), targets)
    return Level(field, None, descending, _group_value(field, form))


def _group_value(field: FieldSpec, form: ValueForm) -> sql.Expression:
    match form:
        case ValueForm.TEXT:
            return ordered_value(field, ENTRY_TEXT)[0]
        case ValueForm.USER:
            return sa.cast(sql.extract(field).expression, sa.Text).collate("C")
        case _:
            return sql.extract(field).expression


def _first_day(field: FieldSpec, granularity: str, timezone: str) -> sql.Expression:
    """The first day of the period a date lies in; NULL for text that is no date."""
    value = sql.extract(field)
    if value_form(field) is ValueForm.DAY:
        local = _parsed(value.expression, "date")
    elif isinstance(value.sql_type, sa.DateTime):
        local = sa.func.timezone(timezone, value.expression)
    else:
        local = sa.func.timezone(timezone, _parsed(value.expression, "timestamptz"))
    return sa.func.to_char(sa.func.date_trunc(granularity, local), "YYYY-MM-DD").collate("C")


def _parsed(value: sql.Expression, type_name: Literal["date", "timestamptz"]) -> sql.Expression:
    read = sa.cast(value, sa.Date() if type_name == "date" else sa.DateTime(timezone=True))
    return sa.case((sa.func.pg_input_is_valid(value, type_name, type_=sa.Boolean), read))


def _period_key(first_day: str, granularity: str) -> str:
    match granularity:
        case "year":
            return first_day[:4]
        case "quarter":
            return f"{first_day[:4]}-Q{(int(first_day[5:7]) + 2) // 3}"
        case "month":
            return first_day[:7]
        case "week":
            year, week, _ = date.fromisoformat(first_day).isocalendar()
            return f"{year:04d}-W{week:02d}"
        case _:
            return first_day


def _elements(field: FieldSpec) -> sa.FromClause:
    """One row for each value of a list."""
    listed = sa.case(
        (sql.json_type(field) == "array", sql.json_of(field)), else_=sa.literal([], JSONB)
    )
    rows = sa.func.jsonb_array_elements_text(listed).table_valued("value")
    return rows.lateral(f"elements_of_{field.id.hex}")


@dataclass(frozen=True, slots=True)
class Query:
    """A selection of records: `shown_fields` are the ones each record shows.

    Every record must pass the `required` tests and satisfy the `further` conditions.
    """

    required: tuple[Leaf, ...]
    further: tuple[sql.Expression, ...]
    with_archived: bool
    order: Order
    levels: tuple[Level, ...]
    figures: tuple[Figure, ...]
    shown_fields: FieldSpecs
    colors: tuple[tuple[sql.Expression, str], ...] = ()
    """The condition of each rule, and the color of records that pass it first."""


def read_query(
    body: RecordQuery, fields: FieldSpecs, now: datetime, unseen: Collection[str] = ()
) -> Query:
    """The query a client described, which must not speak of `unseen` fields.

    Raises `ValidationError` at the place that is wrong.
    """
    _check_timezone(body.timezone)
    visible_fields = {key: spec for key, spec in fields.items() if key not in unseen}
    parts: list[RecordFilter] = []
    if body.filter is not None:
        parts = _parts(read_filter(body.filter, visible_fields, now, body.timezone))
    further = [sql.filter_condition(part) for part in parts if not isinstance(part, Leaf)]
    if body.search:
        further.append(sql.search_condition(_searched(body.search), visible_fields))
    return Query(
        required=tuple(part for part in parts if isinstance(part, Leaf)),
        further=tuple(further),
        with_archived=body.include_archived,
        order=read_order(body.sorts or (), visible_fields),
        levels=read_groups(body.group_by or (), visible_fields, body.timezone),
        figures=read_aggregates(body.aggregates or (), visible_fields),
        colors=_colors(body, visible_fields, now),
        shown_fields=fields if body.fields is None else _chosen(body.fields, fields),
    )


def _parts(tree: RecordFilter) -> list[RecordFilter]:
    """The parts of a filter that must hold at once."""
    if isinstance(tree, AllOf):
        return [part for each in tree.parts for part in _parts(each)]
    return [tree]


def _colors(
    body: RecordQuery, fields: FieldSpecs, now: datetime
) -> tuple[tuple[sql.Expression, str], ...]:
    """The rules that color records. Raises `ValidationError` at `colors.<place>.filter`."""
    rules = []
    for place, rule in enumerate(body.colors or ()):
        try:
            tree = read_filter(rule.filter, fields, now, body.timezone)
        except ValidationError as error:
            path = f"colors.{place}."
            details = [Detail(f"{path}{one.path}", one.message) for one in error.details]
            raise ValidationError(f"{path}{error.message}", details) from error
        rules.append((sql.filter_condition(tree), rule.color))
    return tuple(rules)


def _check_timezone(name: str | None) -> None:
    if name is None:
        return
    try:
        zone(name)
    except ValueError as error:
        raise ValidationError.at("timezone", str(error)) from error


def _searched(search: str) -> str:
    try:
        return text(search)
    except InvalidValueError as problem:
        raise ValidationError.at("search", str(problem)) from problem


def _chosen(keys: Sequence[str], fields: FieldSpecs) -> FieldSpecs:
    for place, key in enumerate(keys):
        if key not in fields:
            raise ValidationError.at(f"fields.{place}", no_field(key, fields))
    return {key: spec for key, spec in fields.items() if key in set(keys)}


_REST = ("sorts", "search", "groupBy", "aggregates", "colors")


def through_view(body: RecordQuery, manifest: Mapping[str, Any]) -> RecordQuery:
    """The query a client described, narrowed and completed by the manifest of a view.

    Raises pydantic's `ValidationError` for a manifest that is none.
    """
    asked = body.model_dump(by_alias=True, exclude_unset=True)
    merged = {name: manifest[name] for name in _REST if manifest.get(name)} | asked
    filters = [one for one in (manifest.get("filter"), asked.get("filter")) if one]
    if filters:
        merged["filter"] = filters[0] if len(filters) == 1 else {"and": filters}
    shown = [one["key"] for one in manifest.get("fields") or () if one.get("visible", True)]
    if shown:
        merged.setdefault("fields", shown)
    return RecordQuery.model_validate(merged)
