"""Filters of fields on values at hand, as `predicates` says them in SQL."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from models.core.filters import memory
from models.core.filters.conditions import Condition, In, Range, Scalar
from models.core.filters.forms import LISTS, ValueForm
from models.core.filters.memory import meets
from models.core.values import stored_moment
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.registry import value_form
from models.data.records.rules.query.filters import Leaf, RecordFilter

_PATTERNS = {
    ValueForm.DAY: re.compile(r"....-..-..", re.DOTALL),
    ValueForm.MOMENT: re.compile(r"....-..-..T..:..:..\....Z", re.DOTALL),
    ValueForm.TIME: re.compile(r"..:...*", re.DOTALL),
}
"""Text of a fixed width, whose order as text is that of what it stands for."""


def holds(tree: RecordFilter, values: Mapping[str, Any]) -> bool:
    """True when stored values by field key satisfy a filter; an absent value is empty."""
    return memory.holds(tree, lambda leaf: leaf_holds(leaf, values.get(leaf.field.key)))


def leaf_holds(leaf: Leaf, stored_value: object) -> bool:
    """True when a stored value meets a condition of its field; a value of another form is empty."""
    form = value_form(leaf.field)
    value = _typed(form, stored_value)
    if value is None and form is ValueForm.RECORDS:
        value = []
    elif value is None and form is ValueForm.BOOLEAN and isinstance(leaf.condition, In):
        value = False
    return meets(_bound(form, leaf.condition), value)


def has_form(field: FieldSpec, stored_value: object) -> bool:
    """True when a stored value has the form of its field; an absent value has every form."""
    return stored_value is None or _typed(value_form(field), stored_value) is not None


def _typed(form: ValueForm, stored_value: object) -> object:
    """The value as conditions are compared with it; None where it has another form."""
    if form is ValueForm.OPAQUE:
        return stored_value
    if form is ValueForm.BOOLEAN:
        return stored_value if isinstance(stored_value, bool) else None
    if form is ValueForm.NUMBER:
        is_number = isinstance(stored_value, int | float) and not isinstance(stored_value, bool)
        return Decimal(repr(stored_value)) if is_number else None
    if form in LISTS:
        return stored_value if isinstance(stored_value, list) else None
    if not isinstance(stored_value, str):
        return None
    pattern = _PATTERNS.get(form)
    return stored_value if pattern is None or pattern.fullmatch(stored_value) else None


def _bound(form: ValueForm, condition: Condition) -> Condition:
    """The condition with its moments in the form in which records store them."""
    if form is not ValueForm.MOMENT:
        return condition
    match condition:
        case In(values):
            return In(
                tuple(stored_moment(value) for value in values if isinstance(value, datetime))
            )
        case Range(low, high):
            return replace(condition, low=_moment(low), high=_moment(high))
    return condition


def _moment(value: Scalar | None) -> Scalar | None:
    return stored_moment(value) if isinstance(value, datetime) else value
