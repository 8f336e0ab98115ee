"""The parts of its variables that an expression reads; no other is converted or copied."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from models.core.expressions.rules.cel_text import names, paths
from models.core.expressions.rules.json_values import readable
from models.core.expressions.rules.nulls import RECORD_MARK, VALUES
from models.core.nearest import known, shown

_MOST_MISSING = 2

Paths = Collection[tuple[str, ...]]


class Reads:
    """The parts of its variables that a text can read, as far as it tells without data."""

    __slots__ = ("_named", "_paths")

    def __init__(self, text: str, variables: Collection[str]) -> None:
        used = names(text)
        self._named = {name: paths(text, name) for name in variables if name in used}
        self._paths = {name: _with_marks(read) for name, read in self._named.items()}

    def take(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The parts that are read, as CEL takes them; an absent variable is null."""
        return {
            name: readable(part(variables.get(name), read)) for name, read in self._paths.items()
        }

    def missing(self, variables: Mapping[str, Any]) -> list[str]:
        """A sentence on each of the first keys that are read and not there: which keys are."""
        return list(islice(self._missing(variables), _MOST_MISSING))

    def _missing(self, variables: Mapping[str, Any]) -> Iterator[str]:
        for name, read in self._named.items():
            for path in sorted(read):
                within, value = [name], variables.get(name)
                for key in path:
                    if not isinstance(value, Mapping):
                        break
                    if key not in value:
                        # Of the nodes only those are loaded that are read.
                        if within != ["nodes"]:
                            place = shown(".".join(within))
                            yield f"There is no {shown(key)} in {place}; {known(key, value)}"
                        break
                    within.append(key)
                    value = value[key]


def part(value: object, read: Paths) -> object:
    """The part of a value that is read at these paths; an empty path reads all of it."""
    if not isinstance(value, Mapping) or not read or () in read:
        return value
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in read:
        below.setdefault(first, []).append(tuple(rest))
    return {key: part(value[key], rests) for key, rests in below.items() if key in value}


def _with_marks(read: Paths) -> Paths:
    """The paths, and for each into the values of a record the one that tells that it is one."""
    marks = {
        (*path[:at], RECORD_MARK)
        for path in read
        for at, key in enumerate(path[:-1])
        if key in VALUES
    }
    return {*read, *marks}
