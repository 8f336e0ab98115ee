"""What an expression reads of its variables, so that the rest is neither converted nor copied."""

from collections.abc import Collection, Mapping
from typing import Any

from models.core.expressions.rules.cel_text import names, paths
from models.core.expressions.rules.json_values import readable
from models.core.expressions.rules.nulls import RECORD_MARK, VALUES

Paths = Collection[tuple[str, ...]]


class Reads:
    """The parts of its variables that a text can read, as far as it tells without data."""

    __slots__ = ("_paths",)

    def __init__(self, text: str, variables: Collection[str]) -> None:
        used = names(text)
        self._paths = {name: _with_marks(paths(text, name)) for name in variables if name in used}

    def take(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """What is read, in the form that CEL reads; an absent variable is null."""
        return {
            name: readable(part(variables.get(name), read)) for name, read in self._paths.items()
        }


def part(value: Any, read: Paths) -> Any:
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
