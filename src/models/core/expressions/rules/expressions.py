"""Expressions of automations behind one small protocol, and the parts of data they read.

Two habits of CEL to know when writing one. A key that a map does not have is an error, not null:
`has(trigger.x)` asks, `coalesce(trigger.x, 0)` falls back. Integers and doubles do not mix in
arithmetic: `double(trigger.count) * 1.5`. The extensions for strings, math and optionals are on.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

from pydantic import JsonValue

from models.core.expressions.rules.cel_text import names, paths, selections
from models.core.expressions.rules.errors import ExpressionError, MissingKeyError
from models.core.expressions.rules.json_values import readable
from models.core.expressions.rules.programs import MAX_LENGTH, Program, Type, environment
from models.core.expressions.rules.syntax import RECORD_MARK, RECORD_VALUES
from models.core.problems import nearest_known, shown_name

__all__ = [
    "MAX_LENGTH",
    "VARIABLES",
    "Expression",
    "ExpressionError",
    "compile_expression",
    "saved_expression",
]

VARIABLES = ("trigger", "nodes", "item", "index", "run", "vars", "record")

_ENVIRONMENT = environment(dict.fromkeys(VARIABLES, Type.ANY))


class Expression(Protocol):
    """A compiled expression."""

    def reads(self, variable: str) -> frozenset[str] | None:
        """The keys of a variable it can read; None when that depends on the data."""

    @property
    def decides(self) -> bool:
        """True when it can give true or false, as far as types are known without data."""

    def evaluate(self, variables: Mapping[str, Any]) -> JsonValue:
        """The JSON value for these variables; an absent variable is null.

        Raises ExpressionError for every error of the evaluation, an exceeded budget included.
        """


def compile_expression(text: str) -> Expression:
    """Check and compile CEL text that is about to be saved.

    Raises ExpressionError that says what is wrong and where, also for a part that always fails.
    """
    saved_expression(text)
    problem = _constant_problem(text)
    if problem is not None:
        raise ExpressionError(problem)
    return saved_expression(text)


def saved_expression(text: str) -> Expression:
    """Compile CEL text that was accepted before, maybe by earlier rules. Raises ExpressionError."""
    compiled = _compiled(text)
    if isinstance(compiled, str):
        raise ExpressionError(compiled)
    return compiled


@lru_cache(maxsize=4_096)
def _constant_problem(text: str) -> str | None:
    compiled = _compiled(text)
    if isinstance(compiled, str):
        return compiled
    try:
        compiled.require_value()
    except ExpressionError as error:
        return error.message
    return None


@lru_cache(maxsize=4_096)
def _compiled(text: str) -> "_CelExpression | str":
    """The expression, or what is wrong with the text: a refused one is not read again, either."""
    try:
        return _CelExpression(text, Program(_ENVIRONMENT, text))
    except ExpressionError as error:
        return error.message


class _CelExpression:
    __slots__ = ("_program", "_reads", "_text")

    def __init__(self, text: str, program: Program) -> None:
        self._text = text
        self._program = program
        self._reads = Reads(text, VARIABLES)

    def reads(self, variable: str) -> frozenset[str] | None:
        return selections(self._text, variable)

    def require_value(self) -> None:
        """Raises ExpressionError as the program does."""
        self._program.require_value()

    @property
    def decides(self) -> bool:
        return self._program.type in ("BOOL", "DYN")

    def evaluate(self, variables: Mapping[str, Any]) -> JsonValue:
        try:
            return self._program.run(self._reads.take(variables))
        except MissingKeyError as error:
            message = ". ".join(self._reads.missing(variables))
            raise MissingKeyError(message or error.message) from None


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
                            place = shown_name(".".join(within))
                            nearest = nearest_known(key, value)
                            yield f"{shown_name(key)} not found in {place}; {nearest}"
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
        if key in RECORD_VALUES
    }
    return {*read, *marks}
