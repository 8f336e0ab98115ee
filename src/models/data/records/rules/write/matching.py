"""The values of some fields by which an upsert finds its record (decisions C5)."""

from collections.abc import Mapping, Sequence
from typing import Any

from models.core.filters.operators import OPERATORS, Op
from models.core.problems import an
from models.core.values import InvalidValueError
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, FieldValue
from models.data.fields.rules.registry import KIND_RULES, value_form
from runtime.errors import Detail

MAX_BY = 5


def meant_values(
    fields: FieldSpecs, upsert_by: Sequence[str], data: Mapping[str, Any], at: str = ""
) -> tuple[dict[str, Any], list[Detail]]:
    """The values to find a record by, in their stored form, and what is wrong with them.

    Problems stand at `upsertBy.<place>` and `data.<fieldKey>` behind the prefix `at`.
    """
    if not 1 <= len(upsert_by) <= MAX_BY:
        return {}, [Detail(f"{at}upsertBy", f"must name 1 to {MAX_BY} fields")]
    values: dict[str, Any] = {}
    problems: list[Detail] = []
    for place, key in enumerate(upsert_by):
        spec = fields.get(key)
        by = f"{at}upsertBy.{place}"
        if spec is None:
            problems.append(Detail(by, no_field(key, fields)))
        elif not _matchable(spec):
            problems.append(Detail(by, f"cannot be matched by: it is {an(spec.kind)} field"))
        else:
            try:
                values[key] = _checked(spec, data.get(key))
            except InvalidValueError as problem:
                problems.append(Detail(f"{at}data.{key}", str(problem)))
    return values, problems


def _matchable(spec: FieldSpec) -> bool:
    return KIND_RULES[spec.kind].check is not None and Op.EQ in OPERATORS[value_form(spec)]


def _checked(spec: FieldSpec, value: object) -> FieldValue:
    if value is None:
        raise InvalidValueError("is needed to find the record")
    check = KIND_RULES[spec.kind].check
    assert check is not None, "fields without a check match nothing"
    return check(spec, value)
