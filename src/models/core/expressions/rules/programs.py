"""Compiled CEL: compiling, evaluating, and the library's messages as authors read them.

The library bounds the iterations of one evaluation and the depth of one text, not what a value or a
type grows to. So a program is evaluated in this process only when it is provably small for its data
(`is_small`); everything else is evaluated in a bounded child process.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_optional, ext_strings
from google.protobuf.message import DecodeError
from pydantic import JsonValue

from models.core.expressions.rules import cel_text, checks, errors, syntax
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.expressions.rules.json_values import ResultReader
from models.core.problems import nearest_known
from runtime.processes.bounded_processes import BoundedProcesses, OverLimitError, check_turn

MAX_LENGTH = 4_000
"""Characters of one expression."""
MOST_OPTIONAL_MAPS = 4
"""Calls of `optMap` and `optFlatMap`, each of which writes what stands before it twice."""

_EXTENSIONS = (ext_strings.ExtStrings(), ext_math.ExtMath(), ext_optional.ExtOptional())


class Type(StrEnum):
    """The types a variable can be declared with; text, number and boolean may be null."""

    ANY = "any"
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    MOMENT = "moment"
    LIST = "list"
    TEXTS = "texts"


_TYPES = {
    Type.ANY: cel.Type.DYN,
    Type.TEXT: cel.Type("google.protobuf.StringValue"),
    Type.NUMBER: cel.Type("google.protobuf.DoubleValue"),
    Type.BOOLEAN: cel.Type("google.protobuf.BoolValue"),
    Type.MOMENT: cel.Type.TIMESTAMP,
    Type.LIST: cel.Type.List(cel.Type.DYN),
    Type.TEXTS: cel.Type.List(cel.Type.STRING),
}
_COALESCE = cel.FunctionDecl(
    cel_text.COALESCE,
    [
        cel.Overload(f"{cel_text.COALESCE}_{count}", cel.Type.DYN, [cel.Type.DYN] * count)
        for count in range(1, cel_text.MOST_COALESCED + 1)
    ],
)
"""Known to the type check alone."""
_OPERATIONS = [
    cel.FunctionDecl(
        each.function,
        [
            cel.Overload(
                f"{each.function}_of_doubles",
                cel.Type.DOUBLE,
                [cel.Type.DOUBLE] * 2,
                impl=each.result,
            )
        ],
    )
    for each in syntax.OPERATIONS.values()
] + [
    cel.FunctionDecl(
        syntax.EXACT,
        [
            cel.Overload(f"{syntax.EXACT}_{kind.name()}", kind, [kind], impl=syntax.exact)
            for kind in (cel.Type.INT, cel.Type.UINT, cel.Type.STRING)
        ],
    ),
    cel.FunctionDecl(
        syntax.DIGITS,
        [
            cel.Overload(
                f"{syntax.DIGITS}_of_double",
                cel.Type.STRING,
                [cel.Type.DOUBLE],
                impl=syntax.digits,
            )
        ],
    ),
]
"""Called by trees that are rewritten: no text can name them."""


class Environment(NamedTuple):
    """The variables that texts are compiled with."""

    variables: tuple[tuple[str, Type], ...]

    @property
    def qualifiers(self) -> frozenset[str]:
        """`record` of a variable `record.price`."""
        return frozenset(name.split(".")[0] for name, _ in self.variables if "." in name)


def environment(variables: Mapping[str, Type]) -> Environment:
    """An environment of these variables by name, and of the extensions."""
    return Environment(tuple(sorted(variables.items())))


_NO_VARIABLES = environment({})


@lru_cache(maxsize=1_024)
def _library(surrounding: Environment) -> cel.Env:
    declared = {name: _TYPES[kind] for name, kind in surrounding.variables}
    functions = [_COALESCE, *_OPERATIONS]
    return cel.NewEnv(variables=declared, extensions=list(_EXTENSIONS), functions=functions)


def parsed(text: str) -> syntax.Message:
    """The parse tree of a text as it is written, with the offset of each node.

    Raises ExpressionError for a text that is none.
    """
    if len(text) > MAX_LENGTH:
        raise errors.ExpressionError(f"The expression has more than {MAX_LENGTH} characters.")
    try:
        serialized = _library(_NO_VARIABLES).compile(text, disable_check=True).serialize()
        return syntax.read_tree(serialized).message
    except DecodeError:
        raise errors.ExpressionError("The expression chains too many calls on one value.") from None
    except (RuntimeError, ValueError, TypeError) as error:
        raise errors.ExpressionError(compile_message(str(error), text, ())) from None


class Program:
    """One compiled text."""

    __slots__ = ("_compiled", "_exact", "_lenient", "_small", "_surrounding", "_text", "_tree")

    def __init__(self, surrounding: Environment, text: str) -> None:
        """Check and compile. Raises ExpressionError that says what is wrong and where.

        Raises WouldBlockError as `check_turn`: a long text takes a tenth of a second.
        """
        if not text.strip():
            raise errors.ExpressionError("The expression is empty.")
        if len(text) > MAX_LENGTH:
            raise errors.ExpressionError(
                f"The expression has {len(text)} characters; at most {MAX_LENGTH} are allowed."
            )
        check_turn(len(text))
        self._surrounding, self._text = surrounding, text
        self._lenient: Any = None
        self._small: dict[checks.Extent | None, bool] = {}
        library = _library(surrounding)
        try:
            _check_size(library, text)
            self._compiled = library.compile(text)
            if cel_text.COALESCE in cel_text.names(text):
                plain = cel_text.without_coalesce(text, surrounding.qualifiers)
                self._compiled = library.compile(plain)
            serialized = self._compiled.serialize()
            self._tree = syntax.read_tree(serialized).root
        except DecodeError:
            raise errors.ExpressionError(
                "The expression chains too many calls on one value."
            ) from None
        except (RuntimeError, ValueError, TypeError) as error:
            variables = [name for name, _ in surrounding.variables]
            raise errors.ExpressionError(compile_message(str(error), text, variables)) from None
        self._exact = _in_decimals(surrounding, serialized) or self._compiled

    def require_value(self) -> None:
        """Raises ExpressionError for a text that can have no value, as far as constants tell."""
        if problem := checks.constant_problem(self._tree, self._of_part, self._of_text):
            raise errors.ExpressionError(problem)

    def _of_part(self, part: syntax.Message) -> checks.Outcome | None:
        if not checks.is_small(part, _NO_DATA):
            return None
        tree = syntax.read_tree(self._compiled.serialize())
        tree.message.expr.CopyFrom(part)
        alone = _library(self._surrounding).deserialize(tree.serialized())
        return _outcome(self._surrounding, alone)

    def _of_text(self, text: str) -> checks.Outcome | None:
        return _outcome(self._surrounding, _library(self._surrounding).compile(text))

    @property
    def type(self) -> str:
        """The type of its result, as far as types are known without data: `BOOL`, `DYN`, …"""
        return str(self._compiled.return_type().name())

    def is_small(self, data: Mapping[str, Any]) -> bool:
        """True when its evaluation with these variables is provably small."""
        extent = checks.extent_of(data)
        is_small_here = self._small.get(extent)
        if is_small_here is None:
            small = extent is not None and checks.is_small(self._tree, extent)
            is_small_here = self._small[extent] = small
        return is_small_here

    def run(self, data: Mapping[str, Any]) -> JsonValue:
        """The JSON value for these variables.

        Raises ExpressionError for every error of the evaluation, ExpressionLimitError for one that
        takes too much, WouldBlockError for one that is not small in a thread that runs a loop.
        """
        check_turn()
        if self.is_small(data):
            return self._evaluated(data, _plain, ResultReader())
        try:
            answer = _processes.call(run_apart, self._request(data))
        except OverLimitError:
            raise errors.ExpressionLimitError from None
        value: JsonValue
        error, value = json.loads(answer)
        if error is not None:
            raise _ERRORS[str(value)](error)
        return value

    def _request(self, data: Mapping[str, Any]) -> bytes:
        moments = {name: str(value) for name, value in data.items() if isinstance(value, datetime)}
        plain = {name: value for name, value in data.items() if name not in moments}
        return json.dumps((self._surrounding, self._text, plain, moments)).encode()

    def run_unbounded(self, data: Mapping[str, Any]) -> JsonValue:
        """The same, always here: what bounds it is the process."""
        return self._evaluated(data, lambda value: value, ResultReader(_opened))

    def _evaluated(
        self, data: Mapping[str, Any], opened: Callable[[Any], Any], reader: ResultReader
    ) -> JsonValue:
        value, problem = _value(self._exact, data)
        if problem is not None and self._with_nulls() is not None:
            value, again = _value(self._with_nulls(), data)
            problem = problem if again is not None else None
        if problem is not None:
            raise problem
        try:
            return reader.read(opened(value))
        except (TypeError, SystemError):
            # Inside a list pybind11 even loses the exception.
            raise errors.OptionalResultError from None
        except MemoryError:
            raise errors.ExpressionLimitError from None

    def _with_nulls(self) -> cel.Expression | None:
        """The program that reads null as filters do; None where that is the same."""
        if self._lenient is None:
            self._lenient = _compiled_with_nulls(self._surrounding, self._compiled)
        return self._lenient or None


_NO_DATA = checks.Extent(checks.ELEMENT, 0)
_processes = BoundedProcesses([__name__])

_NOT_FOUND = "NOT_FOUND: "
_ERRORS = {
    error.__name__: error
    for error in (
        errors.ExpressionError,
        errors.ExpressionLimitError,
        errors.MissingKeyError,
        errors.OptionalResultError,
    )
}


def _opened(value: cel.Value) -> object:
    """A value whose parts are still the library's."""
    return value.value()


def _plain(value: cel.Value) -> object:
    """A value with all its parts: of a small one only."""
    return value.plain_value()


def run_apart(request: bytes) -> bytes:
    """In a child: the error, if any, and the value; beside an error, the name of its class."""
    (variables,), text, data, moments = json.loads(request)
    surrounding = Environment(tuple((name, Type(kind)) for name, kind in variables))
    data.update((name, datetime.fromisoformat(value)) for name, value in moments.items())
    answer: tuple[str | None, Any]
    try:
        answer = (None, _kept(surrounding, text).run_unbounded(data))
    except errors.ExpressionError as error:
        answer = (error.message, type(error).__name__)
    return json.dumps(answer).encode()


@lru_cache(maxsize=512)
def _kept(surrounding: Environment, text: str) -> Program:
    return Program(surrounding, text)


def _value(
    compiled: cel.Expression, data: Mapping[str, Any]
) -> tuple[Any, errors.ExpressionError | None]:
    """The library's value, or what it says against it."""
    try:
        value = compiled.eval(data=data)
        if value.type() != cel.Type.ERROR:
            return value, None
        return None, _runtime_error(str(value.plain_value()))
    except RuntimeError as error:
        return None, _runtime_error(str(error))
    except MemoryError:
        raise errors.ExpressionLimitError from None
    except (TypeError, SystemError):
        # An optional has no Python form.
        return None, errors.OptionalResultError()


def _outcome(surrounding: Environment, compiled: cel.Expression) -> checks.Outcome | None:
    """The outcome of a part without data; None for an optional."""
    value, problem = _value(compiled, {})
    if problem is not None and (lenient := _compiled_with_nulls(surrounding, compiled)):
        value, problem = _value(lenient, {})
    if problem is None:
        return checks.Outcome(_opened(value))
    return (
        None
        if isinstance(problem, errors.OptionalResultError)
        else checks.Outcome(problem=problem.message)
    )


def _compiled_with_nulls(surrounding: Environment, compiled: cel.Expression) -> cel.Expression:
    """The same tree with null read as filters do; False where that is the same tree."""
    try:
        rewritten = syntax.with_nulls(compiled.serialize())
        if rewritten is None:
            return False
        exact = _in_decimals(surrounding, rewritten)
        return exact or _library(surrounding).deserialize(rewritten)
    except (DecodeError, RuntimeError):
        # Nested too deep once it is spelled out.
        return False


def _in_decimals(surrounding: Environment, serialized: bytes) -> cel.Expression | None:
    """The same tree with its arithmetic in decimals; None where that is the same tree."""
    try:
        rewritten = syntax.with_decimals(serialized)
        return None if rewritten is None else _library(surrounding).deserialize(rewritten)
    except (DecodeError, RuntimeError):
        # Nested too deep once it is spelled out: it stays arithmetic of doubles.
        return None


def _check_size(library: cel.Env, text: str) -> None:
    """Raises ExpressionError for a text that takes long to compile, though it is short."""
    optional_maps = sum(token.text in ("optMap", "optFlatMap") for token in cel_text.tokens(text))
    if optional_maps > MOST_OPTIONAL_MAPS:
        raise errors.ExpressionError(
            f"The expression calls optMap or optFlatMap more than {MOST_OPTIONAL_MAPS} times."
        )
    parsed = library.compile(text, disable_check=True)
    if checks.largest_type(syntax.read_tree(parsed.serialize()).root) > checks.LARGEST:
        raise errors.ExpressionError("The maps of the expression are nested too deeply.")


def _runtime_error(text: str) -> errors.ExpressionError:
    """The library tells the class of an error by the code of its status alone."""
    missing = text.startswith(_NOT_FOUND)
    return (errors.MissingKeyError if missing else errors.ExpressionError)(runtime_message(text))


_LONGEST_REASON = 300
_PLACE = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_GRAMMAR = (
    (re.compile(r"^Syntax error: | expecting (\{.*|<EOF>)$"), ""),
    (
        re.compile(
            r"(mismatched|extraneous) input |no viable alternative at input |"
            r"token recognition error at: "
        ),
        "unexpected ",
    ),
    (re.compile(r"'<EOF>'"), "end"),
    (re.compile(r"\bat end$"), "at the end"),
)
"""Words of the parser, and plain ones; what its list says it would take is no help."""
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)' \(in container ''\)")


def compile_message(text: str, expression: str, variables: Collection[str]) -> str:
    """The first error, with its place, and what there is in place of a name that is not."""
    place = _PLACE.search(text)
    if place is None:
        return f"The expression does not compile: {runtime_message(text)}"
    line, column, reason = place.groups()
    for theirs, ours in _GRAMMAR:
        reason = theirs.sub(ours, reason)
    where = f"at line {line}, column {column}" if int(line) > 0 else "as a whole"
    undeclared = _UNDECLARED.search(reason)
    if undeclared is not None:
        name = undeclared[1]
        reason = f"undeclared reference to '{name}'{_instead(name, expression, variables)}"
    return f"The expression does not compile {where}: {quoted(reason)}"


def _instead(name: str, expression: str, variables: Collection[str]) -> str:
    if re.search(rf"\b{re.escape(name)}\s*\(", expression):
        return f"; {nearest_known(name, (one.name for one in FUNCTIONS))}"
    if not variables:
        return ""
    # `node` is meant by `node.ok.status`, unless the variables are themselves `record.price`.
    dotted = any("." in one for one in variables)
    return f"; {nearest_known(name if dotted else name.partition('.')[0], variables)}"


def runtime_message(text: str) -> str:
    """The words of the library against a value."""
    return quoted(_STATUS.sub("", text.partition("\n")[0]))


def quoted(text: str) -> str:
    """Words of the library about a client's text: printable and bounded."""
    shown = text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in shown)
