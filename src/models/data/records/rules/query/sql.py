"""Filters compiled to SQL: conditions, links, and values as they leave the record table.

A stored value that does not have its field's form (a row older than a change of kind, say) counts
as empty: it never makes a query fail.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

from models.core.base import Id
from models.core.filters.grammar import AllOf, AnyOf, Not, ValueForm
from models.core.filters.operands import Anchor, Condition, Empty, Has, In, Range, Substring
from models.core.values import spellings, stored_moment
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.fields.rules.values import KIND_RULES, value_form
from models.data.records.rules.links import side_of
from models.data.records.rules.query.filters import Leaf, RecordFilter
from models.data.records.tables import record, record_link

Expression = sa.ColumnElement[Any]

_MOMENT_TYPE = sa.DateTime(timezone=True)

_UNICODE = "pg_c_utf8"
"""The built-in collation whose lower() knows more than ASCII, in any locale of the server."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A typed expression and the SQL form in which its operands are bound."""

    expression: Expression
    sql_type: TypeEngine[Any]
    bind: Callable[[Any], Any] = lambda value: value

    def literal(self, value: object) -> Expression:
        return sa.literal(self.bind(value), self.sql_type)


_COLUMNS: dict[FieldKind, Extracted] = {
    FieldKind.AUTO_NUMBER: Extracted(sa.cast(record.c.number, sa.Numeric), sa.Numeric()),
    FieldKind.CREATED_AT: Extracted(record.c.created_at, _MOMENT_TYPE),
    FieldKind.UPDATED_AT: Extracted(record.c.updated_at, _MOMENT_TYPE),
    FieldKind.CREATED_BY: Extracted(record.c.created_by_user_id, sa.Uuid(as_uuid=False)),
    FieldKind.UPDATED_BY: Extracted(record.c.updated_by_user_id, sa.Uuid(as_uuid=False)),
}


def extract(field: FieldSpec) -> Extracted:
    """The value of a field that holds one value per record; no timer is empty."""
    if field.title:
        return Extracted(record.c.title.collate("C"), sa.Text())
    if field.kind in _COLUMNS:
        return _COLUMNS[field.kind]
    found = _FORMS[value_form(field)](json_of(field))
    if field.kind is FieldKind.TIMER:
        return Extracted(sa.func.coalesce(found.expression, 0), found.sql_type)
    return found


def fold(text: Expression) -> Expression:
    """A text without the case of its letters."""
    return sa.func.lower(text.collate(_UNICODE))


def json_of(field: FieldSpec) -> Expression:
    """The value as stored, of the type JSONB; of a timer its total."""
    document = record.c.computed if field.computed else record.c.data
    value: Expression = document[field.key]
    return value["totalMs"] if field.kind is FieldKind.TIMER else value


def json_type(field: FieldSpec) -> Expression:
    """`string`, `number`, … or NULL when the key is absent."""
    return sa.func.jsonb_typeof(json_of(field))


def _plain(stored: Expression) -> Expression:
    """A value of a document as text, without the quotes of a string."""
    text: Expression = stored.astext
    return text


def _guarded(stored: Expression, json_kind: str, expression: Expression) -> Expression:
    return sa.case((sa.func.jsonb_typeof(stored) == json_kind, expression))


def _text(stored: Expression) -> Extracted:
    return Extracted(_guarded(stored, "string", _plain(stored)).collate("C"), sa.Text())


def _like(stored: Expression, pattern: str) -> Expression:
    """Text of a fixed width, whose order as text is that of what it stands for."""
    return sa.case((_plain(stored).like(pattern), _plain(stored))).collate("C")


def _number(stored: Expression) -> Extracted:
    return Extracted(_guarded(stored, "number", sa.cast(_plain(stored), sa.Numeric)), sa.Numeric())


def _boolean(stored: Expression) -> Extracted:
    checked = _guarded(stored, "boolean", sa.cast(_plain(stored), sa.Boolean))
    return Extracted(sa.func.coalesce(checked, False), sa.Boolean())


def _day(stored: Expression) -> Extracted:
    return Extracted(_like(stored, "____-__-__"), sa.Text())


def _moment(stored: Expression) -> Extracted:
    return Extracted(_like(stored, "____-__-__T__:__:__.___Z"), sa.Text(), _moment_text)


def _time(stored: Expression) -> Extracted:
    return Extracted(_like(stored, "__:__%"), sa.Text())


def _moment_text(value: object) -> object:
    return stored_moment(value.astimezone(UTC)) if isinstance(value, datetime) else value


_FORMS: dict[ValueForm, Callable[[Expression], Extracted]] = {
    ValueForm.TEXT: _text,
    ValueForm.OPTION: _text,
    ValueForm.NUMBER: _number,
    ValueForm.BOOLEAN: _boolean,
    ValueForm.DAY: _day,
    ValueForm.MOMENT: _moment,
    ValueForm.TIME: _time,
}

_OTHER = record.alias("linked")


def linked(field: FieldSpec) -> sa.Select[Any]:
    """Ids of the records a relation field of the record points at, those in the trash left out."""
    side = side_of(field)
    ends = [(record_link.c.record_id, record_link.c.target_id, side.forward)]
    ends.append((record_link.c.target_id, record_link.c.record_id, side.backward))
    ways = [
        sa.select(other_end.label("id"))
        .join(_OTHER, _OTHER.c.id == other_end)
        .where(
            record_link.c.workspace_id == record.c.workspace_id,
            record_link.c.field_id == side.field_id,
            own_end == record.c.id,
            _OTHER.c.workspace_id == record.c.workspace_id,
            _OTHER.c.deleted_at.is_(None),
        )
        .correlate(record)
        for own_end, other_end, shown in ends
        if shown
    ]
    ids = sa.union_all(*ways).subquery("ends") if len(ways) > 1 else ways[0].subquery("ends")
    return sa.select(ids.c.id).correlate(record)


def links_any(field: FieldSpec, targets: Sequence[str]) -> Expression:
    """True when the field points at one of these records."""
    found = linked(field)
    return found.where(found.selected_columns.id == sa.any_(_ids(targets))).exists()


def links_all(field: FieldSpec, targets: Sequence[str]) -> Expression:
    """True when the field points at every one of these records."""
    ids = linked(field).subquery("linked_ids")
    found = sa.select(sa.func.count(sa.distinct(ids.c.id))).where(
        ids.c.id == sa.any_(_ids(targets))
    )
    return found.scalar_subquery() == len(set(targets))


def links_none(field: FieldSpec) -> Expression:
    """True when the field points at nothing."""
    return ~linked(field).exists()


def linked_rows(field: FieldSpec) -> sa.FromClause:
    """One row `id` for each record the field points at, to be joined to the record."""
    return linked(field).correlate(record).distinct().lateral(f"linked_by_{field.id.hex}")


def _ids(targets: Sequence[str]) -> Expression:
    return sa.literal([Id(target) for target in targets], sa.ARRAY(sa.Uuid))


_NOTHING = ("null", '""', "[]", "{}")
"""The JSON values that hold nothing, as PostgreSQL writes them."""


def filter_condition(tree: RecordFilter) -> Expression:
    """The condition a filter stands for: true or false for every record, never NULL."""
    match tree:
        case Leaf(field, condition):
            return _of_field(field, condition)
        case Not(part):
            return sa.not_(filter_condition(part))
        case AllOf(parts):
            return sa.and_(sa.true(), *(filter_condition(part) for part in parts))
        case AnyOf(parts):
            return sa.or_(sa.false(), *(filter_condition(part) for part in parts))


_ESCAPED = re.compile(r'["\\\x00-\x1f]')
"""Characters that a value has, and the text of its document writes otherwise."""


def search_condition(text: str, fields: FieldSpecs) -> Expression:
    """True when the title or any searched field contains a text, in any case of letters."""
    keys = [
        field.key
        for field in fields.values()
        if not field.title and KIND_RULES[field.kind].searched
    ]
    title = _contains(record.c.title, text, Anchor.ANYWHERE)
    if not keys:
        return title
    pair = sa.func.jsonb_each_text(record.c.data).table_valued("key", "value")
    value = (
        sa.select(sa.literal(1))
        .where(
            pair.c.key == sa.any_(sa.literal(keys, sa.ARRAY(sa.Text))),
            _contains(pair.c.value, text, Anchor.ANYWHERE),
        )
        .exists()
    )
    if _ESCAPED.search(text):
        return sa.or_(title, value)
    # Most records have the text nowhere, which the document says without being taken apart.
    document = _contains(sa.cast(record.c.data, sa.Text), text, Anchor.ANYWHERE)
    return sa.or_(title, sa.and_(document, value))


def _of_field(field: FieldSpec, condition: Condition) -> Expression:
    match condition:
        case Empty():
            return empty(field)
        case Has(elements, every):
            return _has(field, elements, every)
        case Substring(text, anchor):
            return sa.func.coalesce(_contains(extract(field).expression, text, anchor), False)
        case In(members):
            return _in(extract(field), members)
        case Range():
            return _range(extract(field), condition)


def _in(value: Extracted, members: tuple[Any, ...]) -> Expression:
    bound = sa.literal([value.bind(member) for member in members], sa.ARRAY(value.sql_type))
    return sa.func.coalesce(value.expression == sa.any_(bound), False)


def _range(value: Extracted, span: Range) -> Expression:
    bounds: list[Expression] = []
    if span.low is not None:
        low = value.literal(span.low)
        bounds.append(value.expression >= low if span.with_low else value.expression > low)
    if span.high is not None:
        high = value.literal(span.high)
        bounds.append(value.expression <= high if span.with_high else value.expression < high)
    return sa.func.coalesce(sa.and_(*bounds), False)


def _contains(value: Expression, text: str, anchor: Anchor) -> Expression:
    """Wildcards in the text are text: `%` and `_` match themselves (attack 35)."""
    found = fold(value)
    patterns = (_pattern(one, anchor) for one in spellings(text))
    return sa.or_(*(found.like(fold(sa.literal(one, sa.Text)), escape="\\") for one in patterns))


def _pattern(text: str, anchor: Anchor) -> str:
    piece = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return {
        Anchor.ANYWHERE: f"%{piece}%",
        Anchor.START: f"{piece}%",
        Anchor.END: f"%{piece}",
    }[anchor]


def _has(field: FieldSpec, elements: tuple[Any, ...], every: bool) -> Expression:
    if value_form(field) is ValueForm.RECORDS:
        return links_all(field, elements) if every else links_any(field, elements)
    json_value = json_of(field)
    if every:
        condition = json_value.contains(sa.literal(list(elements), JSONB))
    elif value_form(field) is ValueForm.VALUES:
        condition = sa.or_(
            sa.false(), *(json_value.contains(sa.literal([one], JSONB)) for one in elements)
        )
    else:
        condition = json_value.has_any(sa.literal(list(elements), sa.ARRAY(sa.Text)))
    return sa.func.coalesce(sa.and_(json_type(field) == "array", condition), False)


def empty(field: FieldSpec) -> Expression:
    """True when a record has no value of a field."""
    match value_form(field):
        case ValueForm.TEXT | ValueForm.OPTION:
            return sa.func.coalesce(extract(field).expression, "") == ""
        case ValueForm.OPTIONS | ValueForm.USERS | ValueForm.FILES | ValueForm.VALUES:
            filled = sa.and_(json_type(field) == "array", json_of(field) != sa.literal([], JSONB))
            return sa.not_(sa.func.coalesce(filled, False))
        case ValueForm.RECORDS:
            return links_none(field)
        case ValueForm.BOOLEAN:
            return sa.func.coalesce(json_type(field) != "boolean", True)
        case ValueForm.OPAQUE:
            return sa.func.coalesce(sa.cast(json_of(field), sa.Text).in_(_NOTHING), True)
        case _:
            return extract(field).expression.is_(None)
