"""Reading a filter tree: every key known, every operand of the field's type, everything bounded.

The tree of a client becomes a tree of `Test`s, each of which is true or false for every record:
what is empty satisfies no positive test, so a negation is exactly the rest (decisions C5).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from models.core.filters.conditions import Test
from models.core.filters.operators import NEGATIONS, OPERATORS, Op
from models.core.values import InvalidValueError
from models.data.databases.rules.fields import FieldSpec, FieldSpecs
from models.data.databases.rules.registry import value_form
from models.data.databases.rules.settings import zone
from models.data.records.rules.query.operands import read_test
from runtime.errors import ValidationError

MAX_LEAVES = 64
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Leaf:
    """One test of one field."""

    field: FieldSpec
    test: Test


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    part: "Filter"


Filter = Leaf | AllOf | AnyOf | Not


def read_filter(
    raw: Mapping[str, Any], fields: FieldSpecs, now: datetime, timezone: str | None = None
) -> Filter:
    """The filter a client described; `timezone` serves leaves and fields that name none.

    Raises `ValidationError` at the place that is wrong.
    """
    return _Reader(fields, now, timezone).read(raw, "filter", 1)


class _Reader:
    def __init__(self, fields: FieldSpecs, now: datetime, timezone: str | None) -> None:
        self.fields = fields
        self.now = now
        self.timezone = timezone
        self.leaves = self.nodes = 0

    def read(self, raw: Any, path: str, depth: int) -> Filter:
        if not isinstance(raw, Mapping):
            raise ValidationError.at(path, "must be an object")
        self.nodes += 1
        self.leaves += "field" in raw
        if self.leaves > MAX_LEAVES or self.nodes > 2 * MAX_LEAVES:
            raise ValidationError.at("filter", f"must have at most {MAX_LEAVES} conditions")
        if depth > MAX_DEPTH:
            raise ValidationError.at(path, f"must be at most {MAX_DEPTH} levels deep")
        if "field" in raw:
            return self._leaf(raw, path)
        if len(raw) != 1 or not raw.keys() <= {"and", "or", "not"}:
            raise ValidationError.at(
                path, "must be one of {and: […]}, {or: […]}, {not: …}, {field, op, value}"
            )
        connective, inner = next(iter(raw.items()))
        if connective == "not":
            return Not(self.read(inner, f"{path}.not", depth + 1))
        parts = self._parts(inner, f"{path}.{connective}", depth + 1)
        return AllOf(parts) if connective == "and" else AnyOf(parts)

    def _parts(self, raw: Any, path: str, depth: int) -> tuple[Filter, ...]:
        if not isinstance(raw, list):
            raise ValidationError.at(path, "must be a list of filters")
        return tuple(self.read(part, f"{path}.{place}", depth) for place, part in enumerate(raw))

    def _leaf(self, raw: Mapping[str, Any], path: str) -> Filter:
        unknown = raw.keys() - {"field", "op", "value", "timezone"}
        if unknown:
            raise ValidationError.at(f"{path}.{min(unknown)}", "is not a key of a filter")
        field = self._field(raw["field"], f"{path}.field")
        operator = _operator(raw.get("op"), field, f"{path}.op")
        positive = NEGATIONS.get(operator, operator)
        here = self._zone(raw, field, f"{path}.timezone")
        try:
            test = read_test(positive, field, raw.get("value"), self.now, here)
        except InvalidValueError as problem:
            raise ValidationError.at(f"{path}.value", str(problem)) from problem
        leaf = Leaf(field, test)
        return leaf if positive is operator else Not(leaf)

    def _field(self, key: Any, path: str) -> FieldSpec:
        field = self.fields.get(key) if isinstance(key, str) else None
        if field is None:
            raise ValidationError.at(path, "is not the key of a field of this database")
        return field

    def _zone(self, raw: Mapping[str, Any], field: FieldSpec, path: str) -> ZoneInfo:
        name = raw.get("timezone")
        if name is None:
            return zone(self.timezone or field.timezone)
        try:
            return zone(name)
        except (ValueError, TypeError) as error:
            raise ValidationError.at(path, "must be an IANA time zone") from error


def _operator(name: Any, field: FieldSpec, path: str) -> Op:
    usable = OPERATORS[value_form(field)]
    if isinstance(name, str) and name in usable:
        return Op(name)
    raise ValidationError.at(
        path, f"must be an operator of a {field.kind} field: {', '.join(usable)}"
    )
