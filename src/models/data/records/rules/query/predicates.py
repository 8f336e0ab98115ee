"""From a filter to a condition of the record table: values bound, never NULL, never failing."""

import re
from typing import Any

from sqlalchemy import ARRAY, Text, and_, any_, cast, false, func, literal, not_, or_, select, true
from sqlalchemy.dialects.postgresql import JSONB

from models.core.filters.conditions import Anchor, Condition, Empty, Has, In, Range, Substring
from models.core.filters.forms import ValueForm
from models.core.filters.grammar import AllOf, AnyOf, Not
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.registry import KIND_RULES, value_form
from models.data.records.rules.link.conditions import links_all, links_any, links_none
from models.data.records.rules.query.extraction import (
    Expression,
    Extracted,
    extract,
    fold,
    json_of,
    json_type,
)
from models.data.records.rules.query.filters import Leaf, RecordFilter
from models.data.records.tables import record

_NOTHING = ("null", '""', "[]", "{}")
"""The JSON values that hold nothing, as PostgreSQL writes them."""


def filter_condition(tree: RecordFilter) -> Expression:
    """The condition a filter stands for: true or false for every record, never NULL."""
    match tree:
        case Leaf(field, condition):
            return _of_field(field, condition)
        case Not(part):
            return not_(filter_condition(part))
        case AllOf(parts):
            return and_(true(), *(filter_condition(part) for part in parts))
        case AnyOf(parts):
            return or_(false(), *(filter_condition(part) for part in parts))


_ESCAPED = re.compile(r'["\\\x00-\x1f]')
"""Characters that a value has, and the text of its document writes otherwise."""


def search_condition(text: str, fields: FieldSpecs) -> Expression:
    """True when the title or any searched field contains a text, whatever the case of letters."""
    keys = [
        field.key
        for field in fields.values()
        if not field.title and KIND_RULES[field.kind].searched
    ]
    title = _contains(record.c.title, text, Anchor.ANYWHERE)
    if not keys:
        return title
    pair = func.jsonb_each_text(record.c.data).table_valued("key", "value")
    value = (
        select(literal(1))
        .where(
            pair.c.key == any_(literal(keys, ARRAY(Text))),
            _contains(pair.c.value, text, Anchor.ANYWHERE),
        )
        .exists()
    )
    if _ESCAPED.search(text):
        return or_(title, value)
    # Most records have the text nowhere, which the document says without being taken apart.
    document = _contains(cast(record.c.data, Text), text, Anchor.ANYWHERE)
    return or_(title, and_(document, value))


def _of_field(field: FieldSpec, condition: Condition) -> Expression:
    match condition:
        case Empty():
            return empty(field)
        case Has(elements, every):
            return _has(field, elements, every)
        case Substring(text, anchor):
            return func.coalesce(_contains(extract(field).expression, text, anchor), False)
        case In(members):
            return _in(extract(field), members)
        case Range():
            return _range(extract(field), condition)


def _in(value: Extracted, members: tuple[Any, ...]) -> Expression:
    bound = literal([value.bind(member) for member in members], ARRAY(value.sql_type))
    return func.coalesce(value.expression == any_(bound), False)


def _range(value: Extracted, span: Range) -> Expression:
    bounds: list[Expression] = []
    if span.low is not None:
        low = value.literal(span.low)
        bounds.append(value.expression >= low if span.with_low else value.expression > low)
    if span.high is not None:
        high = value.literal(span.high)
        bounds.append(value.expression <= high if span.with_high else value.expression < high)
    return func.coalesce(and_(*bounds), False)


def _contains(value: Expression, text: str, anchor: Anchor) -> Expression:
    """Wildcards in the text are text: `%` and `_` match themselves (attack 35)."""
    piece = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    pattern = {
        Anchor.ANYWHERE: f"%{piece}%",
        Anchor.START: f"{piece}%",
        Anchor.END: f"%{piece}",
    }[anchor]
    return fold(value).like(fold(literal(pattern, Text)), escape="\\")


def _has(field: FieldSpec, elements: tuple[Any, ...], every: bool) -> Expression:
    if value_form(field) is ValueForm.RECORDS:
        return links_all(field, elements) if every else links_any(field, elements)
    json_value = json_of(field)
    if every:
        condition = json_value.contains(literal(list(elements), JSONB))
    elif value_form(field) is ValueForm.VALUES:
        condition = or_(false(), *(json_value.contains(literal([one], JSONB)) for one in elements))
    else:
        condition = json_value.has_any(literal(list(elements), ARRAY(Text)))
    return func.coalesce(and_(json_type(field) == "array", condition), False)


def empty(field: FieldSpec) -> Expression:
    """True when a record has no value of a field."""
    match value_form(field):
        case ValueForm.TEXT | ValueForm.OPTION:
            return func.coalesce(extract(field).expression, "") == ""
        case ValueForm.OPTIONS | ValueForm.USERS | ValueForm.FILES | ValueForm.VALUES:
            filled = and_(json_type(field) == "array", json_of(field) != literal([], JSONB))
            return not_(func.coalesce(filled, False))
        case ValueForm.RECORDS:
            return links_none(field)
        case ValueForm.BOOLEAN:
            return func.coalesce(json_type(field) != "boolean", True)
        case ValueForm.OPAQUE:
            return func.coalesce(cast(json_of(field), Text).in_(_NOTHING), True)
        case _:
            return extract(field).expression.is_(None)
