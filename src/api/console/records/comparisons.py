"""Comparisons of one field, as pages offer them; the API has more (decisions C5)."""

from collections.abc import Mapping
from enum import StrEnum

from api.console.records.entry import is_typed, typed_value
from models.core.base import JsonObject
from models.core.filters.forms import ValueForm
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.registry import value_form
from models.data.fields.rules.value_conversion import Lost
from runtime.errors import ValidationError


class Comparison(StrEnum):
    """The comparisons that a person chooses from."""

    CONTAINS = "contains"
    IS = "is"
    IS_NOT = "is_not"
    MORE = "more"
    LESS = "less"
    EMPTY = "empty"
    FILLED = "filled"


COMPARISONS = [
    ("contains", "contains"),
    ("is", "is"),
    ("is_not", "is not"),
    ("more", "is more than or after"),
    ("less", "is less than or before"),
    ("empty", "is empty"),
    ("filled", "is filled"),
]
_OPS = {
    Comparison.CONTAINS: "contains",
    Comparison.IS: "eq",
    Comparison.IS_NOT: "ne",
    Comparison.MORE: "gt",
    Comparison.LESS: "lt",
    Comparison.EMPTY: "is_empty",
    Comparison.FILLED: "is_not_empty",
}
_OF_SETS = {Comparison.IS: "has_any", Comparison.IS_NOT: "has_none", Comparison.CONTAINS: "has_any"}
_BY_OP = {op: comparison for comparison, op in (_OPS | _OF_SETS).items()} | {
    op: comparison for comparison, op in _OPS.items()
}


def leaf_of(spec: FieldSpec, comparison: Comparison, text: str | None) -> JsonObject:
    """The filter that compares a field with a text. Raises ValidationError at `value`."""
    leaf: JsonObject = {"field": spec.key, "op": _OPS[comparison]}
    if comparison in {Comparison.EMPTY, Comparison.FILLED}:
        return leaf
    if text is None:
        raise ValidationError.at("value", "Say what to compare with.")
    if value_form(spec) is ValueForm.OPTIONS:
        return leaf | {"op": _OF_SETS.get(comparison, leaf["op"]), "value": [text]}
    value = typed_value(spec, text) if is_typed(spec) else text
    if isinstance(value, Lost):
        kind = spec.kind.value.replace("_", " ")
        raise ValidationError.at("value", f"“{spec.label}” holds values of the kind {kind}.")
    return leaf | {"value": value}


def read_leaf(leaf: Mapping[str, object]) -> tuple[str, Comparison, str] | None:
    """The field, the comparison and the text of a filter that `leaf_of` makes; None for others."""
    comparison = _BY_OP.get(str(leaf.get("op")))
    value = leaf.get("value", "")
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if comparison is None or not isinstance(value, str | int | float) or "field" not in leaf:
        return None
    text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    return str(leaf["field"]), comparison, text
