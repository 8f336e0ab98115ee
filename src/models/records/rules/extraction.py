"""How the value of a field leaves the record table: guarded, typed, and NULL where it is empty.

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

from models.databases.rules.fields import FieldSpec
from models.databases.rules.kinds import FieldKind
from models.databases.rules.registry import KIND_RULES, Comparison
from models.databases.rules.values import stored_moment
from models.records.tables import record

Expression = ColumnElement[Any]

_MOMENT_TYPE = DateTime(timezone=True)


@dataclass(frozen=True, slots=True)
class Extracted:
    """A typed expression and the SQL form in which its operands are bound."""

    expression: Expression
    sql_type: TypeEngine[Any]
    bind: Callable[[Any], Any] = lambda value: value

    def literal(self, value: Any) -> Expression:
        return literal(self.bind(value), self.sql_type)


_COLUMNS: dict[FieldKind, Extracted] = {
    FieldKind.AUTO_NUMBER: Extracted(cast(record.c.number, Numeric), Numeric()),
    FieldKind.CREATED_AT: Extracted(record.c.created_at, _MOMENT_TYPE),
    FieldKind.UPDATED_AT: Extracted(record.c.updated_at, _MOMENT_TYPE),
    FieldKind.CREATED_BY: Extracted(record.c.created_by_user_id, Uuid(as_uuid=False)),
    FieldKind.UPDATED_BY: Extracted(record.c.updated_by_user_id, Uuid(as_uuid=False)),
}


def extract(field: FieldSpec) -> Extracted:
    """The value of a field that holds one value per record."""
    if field.title:
        return Extracted(record.c.title.collate("C"), Text())
    if field.kind in _COLUMNS:
        return _COLUMNS[field.kind]
    return _FORMS[KIND_RULES[field.kind].comparison](field.key)


def json_of(field: FieldSpec) -> Expression:
    """The value as stored, of the type JSONB."""
    return record.c.data[field.key]


def json_type(field: FieldSpec) -> Expression:
    """`string`, `number`, … or NULL when the key is absent."""
    return func.jsonb_typeof(json_of(field))


def _plain(key: str) -> Expression:
    text: Expression = record.c.data[key].astext
    return text


def _guarded(key: str, json_kind: str, expression: Expression) -> Expression:
    return case((func.jsonb_typeof(record.c.data[key]) == json_kind, expression))


def _text(key: str) -> Extracted:
    return Extracted(_guarded(key, "string", _plain(key)).collate("C"), Text())


def _like(pattern: str) -> Callable[[str], Expression]:
    """Text of a fixed width, whose order as text is that of what it stands for."""

    def expression(key: str) -> Expression:
        return case((_plain(key).like(pattern), _plain(key))).collate("C")

    return expression


def _number(key: str) -> Extracted:
    return Extracted(_guarded(key, "number", cast(_plain(key), Numeric)), Numeric())


def _boolean(key: str) -> Extracted:
    checked = _guarded(key, "boolean", cast(_plain(key), Boolean))
    return Extracted(func.coalesce(checked, False), Boolean())


def _day(key: str) -> Extracted:
    return Extracted(_like("____-__-__")(key), Text())


def _moment(key: str) -> Extracted:
    return Extracted(_like("____-__-__T__:__:__.___Z")(key), Text(), _moment_text)


def _time(key: str) -> Extracted:
    return Extracted(_like("__:__%")(key), Text())


def _moment_text(value: Any) -> Any:
    return stored_moment(value.astimezone(UTC)) if isinstance(value, datetime) else value


_FORMS: dict[Comparison, Callable[[str], Extracted]] = {
    Comparison.TEXT: _text,
    Comparison.OPTION: _text,
    Comparison.NUMBER: _number,
    Comparison.BOOLEAN: _boolean,
    Comparison.DAY: _day,
    Comparison.MOMENT: _moment,
    Comparison.TIME: _time,
}
