"""Compiled CEL, the only module that calls the library (decisions C11).

The library bounds the iterations of one evaluation and the depth of one text.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_optional, ext_strings

from models.core.expressions.rules import coalesce
from models.core.expressions.rules.cel_text import names
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.json_values import ResultReader

MAX_LENGTH = 4_000
"""Characters of one expression."""

_LONGEST_REASON = 300
_EXTENSIONS = (ext_strings.ExtStrings(), ext_math.ExtMath(), ext_optional.ExtOptional())
_PLACE = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")


class Type:
    """The types a variable can be declared with; text, number and boolean may be null."""

    ANY: Any = cel.Type.DYN
    TEXT: Any = cel.Type("google.protobuf.StringValue")
    NUMBER: Any = cel.Type("google.protobuf.DoubleValue")
    BOOLEAN: Any = cel.Type("google.protobuf.BoolValue")
    MOMENT: Any = cel.Type.TIMESTAMP
    LIST: Any = cel.Type.List(cel.Type.DYN)
    TEXTS: Any = cel.Type.List(cel.Type.STRING)


_COALESCE = cel.FunctionDecl(
    coalesce.NAME,
    [
        cel.Overload(f"{coalesce.NAME}_{count}", Type.ANY, [Type.ANY] * count)
        for count in range(1, coalesce.MOST_ARGUMENTS + 1)
    ],
)
"""Known to the type check alone."""


class Environment(NamedTuple):
    """What texts are compiled in. The qualifier of a variable `record.price` is `record`."""

    cel: Any
    qualifiers: frozenset[str]


def environment(variables: Mapping[str, Any]) -> Environment:
    """An environment of these variables by name, and of the extensions."""
    known = cel.NewEnv(
        variables=dict(variables), extensions=list(_EXTENSIONS), functions=[_COALESCE]
    )
    return Environment(known, frozenset(name.split(".")[0] for name in variables if "." in name))


class Program:
    """One compiled text."""

    __slots__ = ("_compiled",)

    def __init__(self, surrounding: Environment, text: str) -> None:
        """Check and compile. Raises ExpressionError that says what is wrong and where."""
        if not text.strip():
            raise ExpressionError("The expression is empty.")
        if len(text) > MAX_LENGTH:
            raise ExpressionError(
                f"The expression has {len(text)} characters; at most {MAX_LENGTH} are allowed."
            )
        try:
            self._compiled = surrounding.cel.compile(text)
            if coalesce.NAME in names(text):
                plain = coalesce.spelled_out(text, surrounding.qualifiers)
                self._compiled = surrounding.cel.compile(plain)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ExpressionError(_compile_message(str(error))) from None

    @property
    def type(self) -> str:
        """What it gives, as far as types are known without data: `BOOL`, `DYN`, …"""
        return str(self._compiled.return_type().name())

    def run(self, data: Mapping[str, Any]) -> Any:
        """The JSON value for these variables.

        Raises ExpressionError for every error of the evaluation, an exceeded budget included.
        """
        try:
            value = self._compiled.eval(data=data)
            result = value.plain_value()
            failed = value.type() == cel.Type.ERROR
        except RuntimeError as error:
            raise ExpressionError(_runtime_message(str(error))) from None
        except MemoryError:
            raise ExpressionError("The expression needs too much memory.") from None
        except (TypeError, SystemError):
            # An optional has no Python form; inside a list pybind11 even loses the exception.
            raise ExpressionError(
                "The result is an optional value; end it with .orValue(…)."
            ) from None
        if failed:
            raise ExpressionError(_runtime_message(str(result)))
        return ResultReader().read(result)


def _compile_message(text: str) -> str:
    place = _PLACE.search(text)
    if place is None:
        return f"The expression does not compile: {_runtime_message(text)}"
    line, column, reason = place.groups()
    where = f"at line {line}, column {column}" if int(line) > 0 else "as a whole"
    return f"The expression does not compile {where}: {_quoted(reason)}"


def _runtime_message(text: str) -> str:
    return _quoted(_STATUS.sub("", text.partition("\n")[0]))


def _quoted(text: str) -> str:
    """What the library says about a client's text: printable and bounded."""
    shown = text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in shown)
