"""Whether a filter holds for values that are in memory, with the meaning it has in a query."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from models.core.filters.conditions import Empty, Has, In, Piece, Range, Scalar, Where
from models.core.filters.forms import ValueForm
from models.data.databases.rules.fields import FieldSpec
from models.data.databases.rules.registry import value_form
from models.data.records.rules.query.filters import AllOf, AnyOf, Filter, Leaf, Not


def holds(tree: Filter, values: Mapping[str, Any]) -> bool:
    """Whether stored values by field key satisfy a filter; what is absent is empty."""
    match tree:
        case Leaf(field, test):
            return _passes(field, test, values.get(field.key))
        case Not(part):
            return not holds(part, values)
        case AllOf(parts):
            return all(holds(part, values) for part in parts)
        case AnyOf(parts):
            return any(holds(part, values) for part in parts)


def _passes(field: FieldSpec, test: Any, value: Any) -> bool:
    match test:
        case Empty():
            return value in (None, "", [])
        case Has(elements, every):
            given = value if isinstance(value, list) else []
            return (all if every else any)(element in given for element in elements)
        case Piece(text, where):
            return isinstance(value, str) and _contains(value.lower(), text.lower(), where)
        case In(members):
            return _typed(field, value) in members
        case Range():
            typed = _typed(field, value)
            return typed is not None and lies_in(typed, test)
        case _:
            raise TypeError(f"not a test: {test!r}")


def _contains(value: str, text: str, where: Where) -> bool:
    match where:
        case Where.START:
            return value.startswith(text)
        case Where.END:
            return value.endswith(text)
        case Where.ANYWHERE:
            return text in value


def _typed(field: FieldSpec, value: Any) -> Scalar | None:
    """The value in the form in which filters keep their operands; an unchecked box is false."""
    form = value_form(field)
    if form is ValueForm.BOOLEAN:
        return value is True
    if value is None:
        return None
    if form is ValueForm.NUMBER:
        return Decimal(repr(value))
    if form is ValueForm.MOMENT:
        return datetime.fromisoformat(value)
    return str(value)


def lies_in(value: Any, span: Range) -> bool:
    """Whether a value lies in a range of values that it can be ordered with."""
    if span.low is not None and not (value >= span.low if span.with_low else value > span.low):
        return False
    return span.high is None or bool(value <= span.high if span.with_high else value < span.high)
