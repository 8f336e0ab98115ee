"""Filter trees over the variables of a run, evaluated in memory (decisions C5, C8).

`{and|or: […]}`, `{not: …}` and `{field, op, value}`, where `field` is a path into the variables,
such as `nodes.q.records[0].data.price`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from models.automations.rules.kinds import shorten
from models.automations.rules.paths import compile_path
from models.expressions.rules.errors import BindingError
from models.expressions.rules.expressions import VARIABLES

MAX_DEPTH = 10
MAX_CONDITIONS = 200

_LEAF = {"field", "op", "value"}


def matches(tree: Any, variables: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether the variables satisfy the filter. Raises BindingError for a tree that is none.

    A value of another type than the operand is compared as unequal and unordered. Text is
    searched whatever the case of its letters.
    """
    if depth > MAX_DEPTH:
        raise BindingError(f"A filter is nested at most {MAX_DEPTH} levels deep.")
    key = _branch(tree)
    if key == "and":
        return all(matches(part, variables, depth + 1) for part in tree["and"])
    if key == "or":
        return any(matches(part, variables, depth + 1) for part in tree["or"])
    if key == "not":
        return not matches(tree["not"], variables, depth + 1)
    found = compile_path(tree["field"]).get(dict(variables))
    return _OPERATORS[tree["op"]](found, tree.get("value"))


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
    except BindingError as error:
        yield path, error.message
        return
    if key in ("and", "or"):
        for index, part in enumerate(tree[key]):
            yield from filter_problems(part, f"{path}.{key}.{index}", depth + 1, variables)
    elif key == "not":
        yield from filter_problems(tree["not"], f"{path}.not", depth + 1, variables)


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
    if not isinstance(tree["op"], str) or tree["op"] not in _OPERATORS:
        raise BindingError(
            f'Unknown operator "{shorten(str(tree["op"]))}"; known: {", ".join(_OPERATORS)}.'
        )
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


def _between(found: Any, operand: Any) -> bool:
    if not isinstance(operand, list) or len(operand) != 2:
        raise BindingError('The value of "between" is a list of two bounds.')
    return _order(found, operand[0]) in (0, 1) and _order(found, operand[1]) in (0, -1)


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _in_time(sign: int) -> Callable[[Any, Any], bool]:
    def compare(found: Any, operand: Any) -> bool:
        left, right = _moment(found), _moment(operand)
        return left is not None and right is not None and (left > right) - (left < right) == sign

    return compare


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


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": _not(_equal),
    "in": _is_in,
    "not_in": _not(_is_in),
    "contains": _contains,
    "not_contains": _not(_contains),
    "starts_with": _text(str.startswith),
    "ends_with": _text(str.endswith),
    "gt": _ordered(1),
    "gte": _ordered(0, 1),
    "lt": _ordered(-1),
    "lte": _ordered(-1, 0),
    "between": _between,
    "is_empty": _is_empty,
    "is_not_empty": _not(_is_empty),
    "before": _in_time(-1),
    "after": _in_time(1),
    "has_any": _has(any),
    "has_all": _has(all),
    "has_none": _not(_has(any)),
}
