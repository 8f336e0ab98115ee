"""Filters whose leaves name fields: an operator of the field's kind, an operand of its type."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

from models.core.filters.conditions import Condition
from models.core.filters.grammar import Filter, FilterError, RawLeaf, positive_leaf, read_tree
from models.core.filters.operands import read_condition
from models.core.filters.operators import OPERATORS, Op
from models.core.problems import an
from models.core.values import InvalidValueError
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.registry import value_form
from models.data.fields.rules.settings_shapes import zone
from models.data.records.rules.query.operands import operand_reader
from runtime.errors import Detail, ValidationError

MAX_OPERANDS = 500


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition of one field."""

    field: FieldSpec
    condition: Condition


RecordFilter: TypeAlias = Filter[Leaf]


@dataclass(frozen=True, slots=True)
class FieldLeaves:
    """Reads leaves that name fields; `timezone` serves leaves and fields that name none."""

    fields: FieldSpecs
    now: datetime
    timezone: str | None = None

    def read(self, raw: RawLeaf, path: str) -> RecordFilter:
        """The leaf at a path. Raises FilterError."""
        field = self._field(raw["field"], f"{path}.field")
        operator = _operator(raw.get("op"), field, f"{path}.op")
        here = self._zone(raw, field, f"{path}.timezone")
        operand = raw.get("value")
        try:
            return positive_leaf(operator, lambda op: self._leaf(op, field, operand, here))
        except InvalidValueError as problem:
            raise FilterError((f"{path}.value", str(problem))) from problem

    def _leaf(self, op: Op, field: FieldSpec, operand: object, here: ZoneInfo) -> Leaf:
        if isinstance(operand, list) and len(operand) > MAX_OPERANDS:
            raise InvalidValueError(f"must be a list of at most {MAX_OPERANDS} values")
        reader = operand_reader(field)
        return Leaf(field, read_condition(op, value_form(field), reader, operand, self.now, here))

    def _field(self, key: object, path: str) -> FieldSpec:
        field = self.fields.get(key) if isinstance(key, str) else None
        if field is None:
            raise FilterError((path, no_field(key, self.fields)))
        return field

    def _zone(self, raw: RawLeaf, field: FieldSpec, path: str) -> ZoneInfo:
        name = raw.get("timezone")
        if name is None:
            return zone(self.timezone or field.timezone)
        try:
            return zone(name)
        except (ValueError, TypeError) as error:
            raise FilterError((path, "must be an IANA time zone")) from error


def read_filter(
    raw: object, fields: FieldSpecs, now: datetime, timezone: str | None = None
) -> RecordFilter:
    """The filter a client described; `timezone` serves leaves and fields that name none.

    Raises `ValidationError` at the places that are wrong.
    """
    try:
        return read_tree(raw, FieldLeaves(fields, now, timezone).read)
    except FilterError as error:
        details = [Detail(path, message) for path, message in error.problems]
        raise ValidationError(str(error), details) from error


def _operator(name: object, field: FieldSpec, path: str) -> Op:
    usable = OPERATORS[value_form(field)]
    if isinstance(name, str) and name in usable:
        return Op(name)
    raise FilterError((path, f"must be an operator of {an(field.kind)} field: {', '.join(usable)}"))
