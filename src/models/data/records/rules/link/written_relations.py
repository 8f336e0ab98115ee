"""The relations that a write to a record names, read and checked. Pure."""

from collections.abc import Mapping
from typing import Any

from models.core.base import Id
from models.core.values import InvalidValueError
from models.data.fields.rules.field_keys import FieldHints
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.records.rules.write.data import shown_key
from runtime.errors import Detail
from runtime.ids import parse_id

MAX_LINKS = 1_000
"""Records that one write names in one relation field."""


def read_relations(
    fields: FieldSpecs,
    relations: Mapping[str, Any],
    at: str = "",
    hints: FieldHints | None = None,
) -> tuple[dict[str, list[Id]], list[Detail]]:
    """The records each relation field shall point at, and every problem at `relations.<key>`.

    null empties a field. Where a field holds one record at most, its id does in place of a list.
    Whether the records exist is for the command to ask.
    """
    hints = hints or FieldHints(fields)
    targets: dict[str, list[Id]] = {}
    problems: list[Detail] = []
    for key, value in relations.items():
        try:
            targets[key] = _targets(_relation(key, fields, hints), value)
        except InvalidValueError as problem:
            problems.append(Detail(f"{at}relations.{shown_key(key)}", str(problem)))
    return targets, problems


def _relation(key: str, fields: FieldSpecs, hints: FieldHints) -> FieldSpec:
    spec = fields.get(key)
    if spec is None or not spec.relation:
        raise InvalidValueError(hints.no_relation(key))
    return spec


def _targets(spec: FieldSpec, value: object) -> list[Id]:
    single = spec.settings.get("cardinality") == "one"
    if value is None:
        value = []
    elif single and isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or len(value) > MAX_LINKS:
        raise InvalidValueError(f"must be a list of at most {MAX_LINKS} record ids")
    targets = list(dict.fromkeys(_target(entry) for entry in value))
    if single and len(targets) > 1:
        raise InvalidValueError("must be one record at most")
    return targets


def _target(value: object) -> Id:
    target = parse_id(value) if isinstance(value, str) else None
    if target is None:
        raise InvalidValueError("must be a list of record ids")
    return target
