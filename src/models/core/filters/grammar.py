"""The grammar of filters: `{and: […]}`, `{or: […]}`, `{not: …}`, `{field, op, value, timezone?}`.

What `field` names, and what an operator takes as `value`, depends on what is filtered: whoever
reads a tree gives the function that reads its leaves. A filter is true or false for everything it
is asked of: what is empty passes no positive test, so a negation is exactly the rest
(decisions C5).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from models.core.filters.operators import NEGATIONS, Op

MAX_LEAVES = 64
MAX_DEPTH = 8

L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)


@dataclass(frozen=True, slots=True)
class AllOf(Generic[L_co]):
    parts: "tuple[Filter[L_co], ...]"


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[L_co]):
    parts: "tuple[Filter[L_co], ...]"


@dataclass(frozen=True, slots=True)
class Not(Generic[L_co]):
    part: "Filter[L_co]"


Filter: TypeAlias = L | AllOf[L] | AnyOf[L] | Not[L]
"""A tree whose leaves are of the type `L`."""


class FilterError(Exception):
    """A filter cannot be read; each problem is a path and a sentence that may begin with it."""

    retryable = False

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


RawLeaf = Mapping[str, Any]
ReadLeaf = Callable[[RawLeaf, str], Filter[L]]
"""Reads a leaf, given its path. Raises FilterError."""

_CONNECTIVES = frozenset({"and", "or", "not"})
_LEAF_KEYS = frozenset({"field", "op", "value", "timezone"})


def read_tree(raw: object, read_leaf: ReadLeaf[L]) -> Filter[L]:
    """The tree a client described. Raises FilterError that names everything that is wrong."""
    reader = _Reader(read_leaf)
    tree = reader.read(raw, "filter", 1)
    if reader.problems or tree is None:
        raise FilterError(*reader.problems)
    return tree


def positive_leaf(op: Op, leaf: Callable[[Op], L]) -> Filter[L]:
    """The leaf of an operator; of a negation the leaf of what it negates, under `Not`."""
    positive = NEGATIONS.get(op)
    return leaf(op) if positive is None else Not(leaf(positive))


class _TooManyError(Exception):
    """The tree is too large to read on."""

    retryable = False


class _Reader(Generic[L]):
    def __init__(self, read_leaf: ReadLeaf[L]) -> None:
        self.read_leaf = read_leaf
        self.leaves = self.nodes = 0
        self.problems: list[tuple[str, str]] = []

    def read(self, raw: object, path: str, depth: int) -> Filter[L] | None:
        """The tree at a path; None after a problem was noted."""
        try:
            return self._read(raw, path, depth)
        except FilterError as error:
            self.problems += error.problems
        except _TooManyError:
            if depth > 1:
                raise
            self.problems = [("filter", f"must have at most {MAX_LEAVES} conditions")]
        return None

    def _read(self, raw: object, path: str, depth: int) -> Filter[L] | None:
        if not isinstance(raw, Mapping):
            raise FilterError((path, "must be an object"))
        self.nodes += 1
        self.leaves += "field" in raw
        if self.leaves > MAX_LEAVES or self.nodes > 2 * MAX_LEAVES:
            raise _TooManyError
        if depth > MAX_DEPTH:
            raise FilterError((path, f"must be at most {MAX_DEPTH} levels deep"))
        if "field" in raw:
            unknown = raw.keys() - _LEAF_KEYS
            if unknown:
                raise FilterError((f"{path}.{min(unknown)}", "is not a key of a filter"))
            return self.read_leaf(raw, path)
        if len(raw) != 1 or not raw.keys() <= _CONNECTIVES:
            raise FilterError(
                (path, "must be one of {and: […]}, {or: […]}, {not: …}, {field, op, value}")
            )
        connective, inner = next(iter(raw.items()))
        if connective == "not":
            part = self.read(inner, f"{path}.not", depth + 1)
            return None if part is None else Not(part)
        parts = self._parts(inner, f"{path}.{connective}", depth + 1)
        return AllOf(parts) if connective == "and" else AnyOf(parts)

    def _parts(self, raw: object, path: str, depth: int) -> tuple[Filter[L], ...]:
        if not isinstance(raw, list):
            raise FilterError((path, "must be a list of filters"))
        parts = [self.read(part, f"{path}.{place}", depth) for place, part in enumerate(raw)]
        return tuple(part for part in parts if part is not None)
