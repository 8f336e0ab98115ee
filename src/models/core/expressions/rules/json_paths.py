"""JSONPath (RFC 9535) as jsonpath-ng reads it, evaluated under a budget, which the library lacks.

The library also wraps each value it comes across, which took many seconds for a megabyte of data.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jsonpath_ng import jsonpath
from jsonpath_ng.parser import parse

from models.core.expressions.rules.errors import BindingError, ExpressionLimitError
from models.core.values import children
from runtime.processes.bounded_processes import check_turn

MAX_VISITED = 250_000
"""Values that one evaluation comes across, those inside of what it gives included."""
_TURN = 1_000
"""Values between two looks at the time."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Selects from each value so far or, if `deep`, from all that is inside it, too."""

    select: Callable[[Any], Iterable[Any]]
    deep: bool


def read_query(text: str) -> tuple[Segment, ...]:
    """The segments of a path of names, indexes, slices and wildcards."""
    return tuple(_segments(parse(text)))


def matches(segments: Iterable[Segment], value: object, budget: int = MAX_VISITED) -> list[Any]:
    """Every value that matches, in the order of the RFC.

    Raises ExpressionLimitError beyond `budget` values, WouldBlockError as `check_turn`.
    """
    values = [value]
    visits = _Visits(budget)
    for segment in segments:
        matched: list[Any] = []
        for node in _with_descendants(values) if segment.deep else values:
            visits.count()
            matched.extend(segment.select(node))
        values = matched
    # A value inside others that match, too, is there as often in the result.
    for _ in _with_descendants(values):
        visits.count()
    return values


class _Visits:
    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._visited = 0

    def count(self) -> None:
        self._visited += 1
        if self._visited > self._budget:
            raise ExpressionLimitError(
                f"The path reads more than {self._budget} values. Start it deeper in the data."
            )
        if self._visited % _TURN == 0:
            check_turn()


def _segments(tree: Any) -> Iterator[Segment]:
    if isinstance(tree, jsonpath.Root):
        return
    yield from _segments(tree.left)
    yield Segment(_selector(tree.right), isinstance(tree, jsonpath.Descendants))


def _selector(tree: jsonpath.JSONPath) -> Callable[[Any], Iterable[Any]]:
    match tree:
        case jsonpath.Wildcard():
            return children
        case jsonpath.Fields():
            return lambda value: _members(value, tree.fields)
        case jsonpath.Index():
            return lambda value: _elements(value, tree.indices)
        case jsonpath.Slice():
            part = slice(tree.start, tree.end)
            return lambda value: value[part] if isinstance(value, list) else ()
    raise BindingError("A path can only have names, indexes, slices and wildcards.")


def _members(value: object, keys: Iterable[str]) -> list[Any]:
    return [value[key] for key in keys if key in value] if isinstance(value, dict) else []


def _elements(value: object, indexes: Iterable[int]) -> list[Any]:
    if not isinstance(value, list):
        return []
    return [value[index] for index in indexes if -len(value) <= index < len(value)]


def _with_descendants(values: Iterable[Any]) -> Iterator[Any]:
    """Each value and all that is inside it, depth first."""
    for value in values:
        stack = [value]
        while stack:
            item = stack.pop()
            yield item
            if isinstance(item, dict | list):
                stack.extend(reversed([*children(item)]))
