"""Filters whose leaves are paths into variables, such as `nodes.q.records[0].data.price` (C8).

Days begin in the time zone of the leaf, by default UTC.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.language.bindings import is_binding
from models.automation.automations.rules.language.paths import Path, compile_path
from models.core.base import JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import VARIABLES
from models.core.filters import json_values
from models.core.filters.grammar import Filter, FilterError, RawLeaf, positive_leaf, read_tree
from models.core.filters.memory import holds
from models.core.filters.operators import Op
from models.core.schedules.timezones import is_timezone
from models.core.values import InvalidValueError


@dataclass(frozen=True, slots=True)
class PathLeaf:
    """An operator over the JSON value at a path."""

    path: Path
    op: Op
    operand: Any
    zone: ZoneInfo

    def holds(self, variables: JsonObject, now: datetime) -> bool:
        """True when it holds for the variables now.

        Raises BindingError for an operand that cannot be read, and for data too large to search.
        """
        found = self.path.get(variables)
        try:
            return json_values.passes(self.op, found, self.operand, now, self.zone)
        except InvalidValueError as error:
            raise BindingError(f'The value of "{self.op}" {error}.') from None


def matches(tree: object, variables: Mapping[str, Any], now: datetime) -> bool:
    """True when the variables satisfy the filter now.

    Raises BindingError for a tree that is none.
    """
    try:
        read = read_tree(tree, read_path_leaf)
    except FilterError as error:
        raise BindingError(f"The filter cannot be read: {error}.") from None
    known = dict(variables)
    return holds(read, lambda leaf: leaf.holds(known, now))


def filter_problems(
    tree: object, variables: Collection[str] = VARIABLES
) -> Iterator[tuple[str, str]]:
    """The problems of a filter, each as path and sentence, before any value is known.

    Paths begin with one of the variables.
    """

    def read(raw: RawLeaf, path: str) -> Filter[PathLeaf]:
        leaf = read_path_leaf(raw, path)
        first, _ = compile_path(raw["field"]).split()
        if first not in variables:
            raise FilterError((path, f'Unknown variable "{shorten(first)}" in "field".'))
        check_path_operand(raw, path)
        return leaf

    try:
        read_tree(tree, read)
    except FilterError as error:
        yield from error.problems


def read_path_leaf(raw: RawLeaf, path: str) -> Filter[PathLeaf]:
    """The leaf at a path of the filter. Raises FilterError."""
    if "op" not in raw or not isinstance(raw["field"], str):
        raise FilterError((path, "A filter is {field, op, value}, field a path: trigger.price."))
    op = raw["op"]
    if not isinstance(op, str) or op not in set(Op):
        known = ", ".join(Op)
        raise FilterError((path, f'Unknown operator "{shorten(str(op))}"; known: {known}.'))
    zone = raw.get("timezone")
    if zone is not None and not (isinstance(zone, str) and is_timezone(zone)):
        raise FilterError((path, '"timezone" is an IANA time zone such as Europe/Berlin.'))
    try:
        found = compile_path(raw["field"])
        found.split()
    except BindingError as error:
        raise FilterError((path, error.message)) from None
    here, operand = ZoneInfo(zone or "UTC"), raw.get("value")
    return positive_leaf(Op(op), lambda positive: PathLeaf(found, positive, operand, here))


def check_path_operand(raw: RawLeaf, path: str) -> None:
    """Raises FilterError for an operand that says nothing; what is bound is known later."""
    operand = raw.get("value")
    if is_binding(operand):
        return
    try:
        json_values.check_operand(Op(raw["op"]), operand)
    except InvalidValueError as error:
        raise FilterError((f"{path}.value", f'The value of "{raw["op"]}" {error}.')) from None
