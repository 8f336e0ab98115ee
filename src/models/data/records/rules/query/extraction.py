"""Field values as they leave the record table: guarded, typed, and NULL where they are empty.

A stored value that does not have its field's form (a row older than a change of kind, say) counts
as empty: it never makes a query fail.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    DateTime,
    Numeric,
    Text,
    Uuid,
    case,
    cast,
    func,
    literal,
)
from sqlalchemy.types import TypeEngine

from models.core.filters.forms import ValueForm
from models.core.values import stored_moment
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.registry import value_form
from models.data.records.tables import record

Expression = ColumnElement[Any]

_MOMENT_TYPE = DateTime(timezone=True)

_UNICODE = "pg_c_utf8"
"""The built-in collation whose lower() knows more than ASCII, whatever the server's locale."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A typed expression and the SQL form in which its operands are bound."""

    expression: Expression
    sql_type: TypeEngine[Any]
    bind: Callable[[Any], Any] = lambda value: value

    def literal(self, value: object) -> Expression:
        return literal(self.bind(value), self.sql_type)


_COLUMNS: dict[FieldKind, Extracted] = {
    FieldKind.AUTO_NUMBER: Extracted(cast(record.c.number, Numeric), Numeric()),
    FieldKind.CREATED_AT: Extracted(record.c.created_at, _MOMENT_TYPE),
    FieldKind.UPDATED_AT: Extracted(record.c.updated_at, _MOMENT_TYPE),
    FieldKind.CREATED_BY: Extracted(record.c.created_by_user_id, Uuid(as_uuid=False)),
    FieldKind.UPDATED_BY: Extracted(record.c.updated_by_user_id, Uuid(as_uuid=False)),
}


def extract(field: FieldSpec) -> Extracted:
    """The value of a field that holds one value per record; no timer is empty."""
    if field.title:
        return Extracted(record.c.title.collate("C"), Text())
    if field.kind in _COLUMNS:
        return _COLUMNS[field.kind]
    found = _FORMS[value_form(field)](json_of(field))
    if field.kind is FieldKind.TIMER:
        return Extracted(func.coalesce(found.expression, 0), found.sql_type)
    return found


def fold(text: Expression) -> Expression:
    """A text without the case of its letters."""
    return func.lower(text.collate(_UNICODE))


def json_of(field: FieldSpec) -> Expression:
    """The value as stored, of the type JSONB; of a timer its total."""
    document = record.c.computed if field.computed else record.c.data
    value: Expression = document[field.key]
    return value["totalMs"] if field.kind is FieldKind.TIMER else value


def json_type(field: FieldSpec) -> Expression:
    """`string`, `number`, … or NULL when the key is absent."""
    return func.jsonb_typeof(json_of(field))


def _plain(stored: Expression) -> Expression:
    """A value of a document as text, without the quotes of a string."""
    text: Expression = stored.astext
    return text


def _guarded(stored: Expression, json_kind: str, expression: Expression) -> Expression:
    return case((func.jsonb_typeof(stored) == json_kind, expression))


def _text(stored: Expression) -> Extracted:
    return Extracted(_guarded(stored, "string", _plain(stored)).collate("C"), Text())


def _like(stored: Expression, pattern: str) -> Expression:
    """Text of a fixed width, whose order as text is that of what it stands for."""
    return case((_plain(stored).like(pattern), _plain(stored))).collate("C")


def _number(stored: Expression) -> Extracted:
    return Extracted(_guarded(stored, "number", cast(_plain(stored), Numeric)), Numeric())


def _boolean(stored: Expression) -> Extracted:
    checked = _guarded(stored, "boolean", cast(_plain(stored), Boolean))
    return Extracted(func.coalesce(checked, False), Boolean())


def _day(stored: Expression) -> Extracted:
    return Extracted(_like(stored, "____-__-__"), Text())


def _moment(stored: Expression) -> Extracted:
    return Extracted(_like(stored, "____-__-__T__:__:__.___Z"), Text(), _moment_text)


def _time(stored: Expression) -> Extracted:
    return Extracted(_like(stored, "__:__%"), Text())


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
