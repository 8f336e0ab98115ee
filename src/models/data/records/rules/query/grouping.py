"""Groups of records: by the value of one field or two, dates by the period they lie in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from sqlalchemy import (
    ARRAY,
    Boolean,
    Date,
    DateTime,
    FromClause,
    Text,
    case,
    cast,
    func,
    literal,
    nulls_last,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.core.filters.forms import ValueForm
from models.core.problems import an
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.registry import value_form
from models.data.records.rules.link.conditions import linked_rows
from models.data.records.rules.query.aggregation import shown_value
from models.data.records.rules.query.entries import ENTRY_TEXT
from models.data.records.rules.query.extraction import Expression, extract, json_of, json_type
from models.data.records.rules.query.ordering import ordered_value
from models.data.records.shapes import GroupBy
from runtime.errors import ValidationError

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
    value: Expression
    elements: FromClause | None = None
    """The rows to join to a record, one for each of its values."""

    def order(self, value: Expression) -> list[Expression]:
        """The order of the groups, given the column that holds their value."""
        columns = [value]
        if value_form(self.field) in {ValueForm.OPTION, ValueForm.OPTIONS}:
            keys = literal(list(self.field.option_keys), ARRAY(Text))
            columns = [func.array_position(keys, value), value]
        return [nulls_last(one.desc() if self.descending else one.asc()) for one in columns]

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
        raise ValidationError.at("groupBy.1.field", "is the field of the first level")
    return tuple(levels)


def _level(group: GroupBy, fields: FieldSpecs, timezone: str | None, path: str) -> Level:
    field = fields.get(group.field)
    if field is None:
        raise ValidationError.at(f"{path}.field", no_field(group.field, fields))
    form = value_form(field)
    if form in _UNGROUPED:
        raise ValidationError.at(
            f"{path}.field", f"cannot be grouped by: it is {an(field.kind)} field"
        )
    if form not in _DATES and group.granularity is not None:
        raise ValidationError.at(f"{path}.granularity", "is for dates alone")
    descending = group.direction == "desc"
    if form in _DATES:
        granularity = group.granularity or "day"
        first_day = _first_day(field, granularity, timezone or field.timezone)
        return Level(field, granularity, descending, first_day)
    if form in _ELEMENTS:
        elements = _elements(field)
        return Level(field, None, descending, elements.c.value.collate("C"), elements)
    if form is ValueForm.RECORDS:
        targets = linked_rows(field)
        return Level(field, None, descending, cast(targets.c.id, Text).collate("C"), targets)
    return Level(field, None, descending, _value(field, form))


def _value(field: FieldSpec, form: ValueForm) -> Expression:
    match form:
        case ValueForm.TEXT:
            return ordered_value(field, ENTRY_TEXT)[0]
        case ValueForm.USER:
            return cast(extract(field).expression, Text).collate("C")
        case _:
            return extract(field).expression


def _first_day(field: FieldSpec, granularity: str, timezone: str) -> Expression:
    """The first day of the period a date lies in; NULL for text that is no date."""
    value = extract(field)
    if value_form(field) is ValueForm.DAY:
        local = _parsed(value.expression, "date")
    elif isinstance(value.sql_type, DateTime):
        local = func.timezone(timezone, value.expression)
    else:
        local = func.timezone(timezone, _parsed(value.expression, "timestamptz"))
    return func.to_char(func.date_trunc(granularity, local), "YYYY-MM-DD").collate("C")


def _parsed(value: Expression, type_name: Literal["date", "timestamptz"]) -> Expression:
    read = cast(value, Date() if type_name == "date" else DateTime(timezone=True))
    return case((func.pg_input_is_valid(value, type_name, type_=Boolean), read))


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


def _elements(field: FieldSpec) -> FromClause:
    """One row for each value of a list."""
    listed = case((json_type(field) == "array", json_of(field)), else_=literal([], JSONB))
    rows = func.jsonb_array_elements_text(listed).table_valued("value")
    return rows.lateral(f"elements_of_{field.id.hex}")
