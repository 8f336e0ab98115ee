"""Filter trees over the variables of a run, evaluated in memory (decisions C5, C8).

`{and|or: […]}`, `{not: …}` and `{field, op, value, timezone?}`, where `field` is a path into the
variables, such as `nodes.q.records[0].data.price`. Days begin in the time zone, by default UTC.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.language.bindings import is_binding
from models.automation.automations.rules.language.paths import compile_path
from models.automation.automations.rules.language.time_filters import (
    TELL_TIME,
    in_time,
    operand_problem,
)
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import VARIABLES
from models.core.filters.operators import Op
from models.core.schedules.timezones import is_timezone

MAX_DEPTH = 10
MAX_CONDITIONS = 200
TWO_BOUNDS = 'The value of "between" is a list of two bounds.'

_LEAF = {"field", "op", "value", "timezone"}


def matches(tree: Any, variables: Mapping[str, Any], now: datetime, depth: int = 0) -> bool:
    """Whether the variables satisfy the filter now. Raises BindingError for a tree that is none.

    A value of another type than the operand is compared as unequal and unordered. Text is
    searched whatever the case of its letters.
    """
    if depth > MAX_DEPTH:
        raise BindingError(f"A filter is nested at most {MAX_DEPTH} levels deep.")
    key = _branch(tree)
    if key == "and":
        return all(matches(part, variables, now, depth + 1) for part in tree["and"])
    if key == "or":
        return any(matches(part, variables, now, depth + 1) for part in tree["or"])
    if key == "not":
        return not matches(tree["not"], variables, now, depth + 1)
    found = compile_path(tree["field"]).get(dict(variables))
    op, operand = Op(tree["op"]), tree.get("value")
    if op in TELL_TIME:
        return in_time(op, found, operand, now, ZoneInfo(tree.get("timezone") or "UTC"))
    return _OPERATORS[op](found, operand)


def filter_problems(
    tree: Any,
    path: str = "filter",
    depth: int = 0,
    variables: Collection[str] | None = VARIABLES,
) -> Iterator[tuple[str, str]]:
    """What is wrong with a filter, each as path and sentence, before any value is known.

    Paths begin with one of the variables; None leaves that to the caller.
    """
    if depth > MAX_DEPTH:
        yield path, f"A filter is nested at most {MAX_DEPTH} levels deep."
        return
    try:
        key = _branch(tree)
        if key == "field":
            first, _ = compile_path(tree["field"]).split()
            if variables is not None and first not in variables:
                yield path, f'Unknown variable "{shorten(first)}" in "field".'
            yield from _operand_problems(tree, path)
    except BindingError as error:
        yield path, error.message
        return
    if key in ("and", "or"):
        for index, part in enumerate(tree[key]):
            yield from filter_problems(part, f"{path}.{key}.{index}", depth + 1, variables)
    elif key == "not":
        yield from filter_problems(tree["not"], f"{path}.not", depth + 1, variables)


def _operand_problems(leaf: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    op, operand = Op(leaf["op"]), leaf.get("value")
    if is_binding(operand):
        return
    if op in TELL_TIME and (problem := operand_problem(op, operand)) is not None:
        yield f"{path}.value", problem
    elif op is Op.BETWEEN and not _is_pair(operand):
        yield f"{path}.value", TWO_BOUNDS


def filter_names(tree: Any) -> Iterator[str]:
    """What the paths of a well-formed filter begin with."""
    key = _branch(tree)
    if key == "field":
        yield str(compile_path(tree["field"]).split()[0])
    for part in tree[key] if key in ("and", "or") else [tree["not"]] if key == "not" else []:
        yield from filter_names(part)


def _branch(tree: Any) -> str:
    """Which of the four forms a node of the tree has; BindingError when it has none."""
    if isinstance(tree, Mapping):
        keys = set(tree)
        if keys in ({"and"}, {"or"}):
            (key,) = keys
            if isinstance(tree[key], list) and len(tree[key]) <= MAX_CONDITIONS:
                return str(key)
            raise BindingError(f'"{key}" holds a list of at most {MAX_CONDITIONS} filters.')
        if keys == {"not"}:
            return "not"
        if {"field", "op"} <= keys <= _LEAF:
            return _leaf(tree)
    raise BindingError('A filter is {"and": […]}, {"or": […]}, {"not": …} or {field, op, value}.')


def _leaf(tree: Mapping[str, Any]) -> str:
    if not isinstance(tree["field"], str):
        raise BindingError('"field" is a path such as trigger.price.')
    if not isinstance(tree["op"], str) or tree["op"] not in set(Op):
        raise BindingError(
            f'Unknown operator "{shorten(str(tree["op"]))}"; known: {", ".join(Op)}.'
        )
    zone = tree.get("timezone")
    if zone is not None and not (isinstance(zone, str) and is_timezone(zone)):
        raise BindingError('"timezone" is an IANA time zone such as Europe/Berlin.')
    return "field"


def _equal(found: Any, operand: Any) -> bool:
    """Equality of JSON values: true is not 1."""
    if isinstance(found, bool) or isinstance(operand, bool):
        return found is operand
    if isinstance(found, list) and isinstance(operand, list):
        return len(found) == len(operand) and all(map(_equal, found, operand))
    if isinstance(found, dict) and isinstance(operand, dict):
        same_keys = found.keys() == operand.keys()
        return same_keys and all(_equal(found[key], operand[key]) for key in found)
    return bool(found == operand)


def _is_in(found: Any, operand: Any) -> bool:
    return isinstance(operand, list) and any(_equal(found, item) for item in operand)


def _contains(found: Any, operand: Any) -> bool:
    if isinstance(found, list):
        return _is_in(operand, found)
    return (
        isinstance(found, str)
        and isinstance(operand, str)
        and (operand.casefold() in found.casefold())
    )


def _text(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def compare(found: Any, operand: Any) -> bool:
        both_text = isinstance(found, str) and isinstance(operand, str)
        return both_text and test(found.casefold(), operand.casefold())

    return compare


def _order(found: Any, operand: Any) -> int | None:
    """-1, 0 or 1, or None when the two cannot be ordered."""
    if isinstance(found, str) and isinstance(operand, str):
        return (found > operand) - (found < operand)
    numbers = not isinstance(found, bool) and not isinstance(operand, bool)
    if numbers and isinstance(found, int | float) and isinstance(operand, int | float):
        return (found > operand) - (found < operand)
    return None


def _ordered(*signs: int) -> Callable[[Any, Any], bool]:
    return lambda found, operand: _order(found, operand) in signs


def _is_pair(operand: Any) -> bool:
    return isinstance(operand, list) and len(operand) == 2


def _between(found: Any, operand: Any) -> bool:
    if not _is_pair(operand):
        raise BindingError(TWO_BOUNDS)
    return _order(found, operand[0]) in (0, 1) and _order(found, operand[1]) in (0, -1)


def _is_empty(found: Any, _: Any) -> bool:
    return found is None or found in ("", [], {})


def _has(count: Callable[[list[bool]], bool]) -> Callable[[Any, Any], bool]:
    def compare(found: Any, operand: Any) -> bool:
        elements = found if isinstance(found, list) else []
        wanted = operand if isinstance(operand, list) else [operand]
        return count([_is_in(item, elements) for item in wanted])

    return compare


def _not(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda found, operand: not test(found, operand)


_OPERATORS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: _equal,
    Op.NE: _not(_equal),
    Op.IN: _is_in,
    Op.NOT_IN: _not(_is_in),
    Op.CONTAINS: _contains,
    Op.NOT_CONTAINS: _not(_contains),
    Op.STARTS_WITH: _text(str.startswith),
    Op.ENDS_WITH: _text(str.endswith),
    Op.GT: _ordered(1),
    Op.GTE: _ordered(0, 1),
    Op.LT: _ordered(-1),
    Op.LTE: _ordered(-1, 0),
    Op.BETWEEN: _between,
    Op.IS_EMPTY: _is_empty,
    Op.IS_NOT_EMPTY: _not(_is_empty),
    Op.HAS_ANY: _has(any),
    Op.HAS_ALL: _has(all),
    Op.HAS_NONE: _not(_has(any)),
}
