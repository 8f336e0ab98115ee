"""CEL expressions behind one small protocol (decisions C11).

Two habits of CEL to know when writing one. A key that a map does not have is an error, not null:
`has(trigger.x)` asks, `trigger.?x.orValue(0)` falls back. Integers and doubles do not mix in
arithmetic: `double(trigger.count) * 1.5`. The extensions for strings, math and optionals are on.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_optional, ext_strings

from models.automations.rules.cel_text import names, node_references
from models.automations.rules.errors import ExpressionError
from models.automations.rules.json_values import ResultReader, readable
from models.automations.rules.kinds import shorten

__all__ = ["MAX_LENGTH", "VARIABLES", "Expression", "ExpressionError", "compile_expression"]

MAX_LENGTH = 4_000
"""Characters of one expression."""

VARIABLES = ("trigger", "nodes", "item", "index", "run", "vars", "record")

_ENVIRONMENT = cel.NewEnv(
    variables=dict.fromkeys(VARIABLES, cel.Type.DYN),
    extensions=[ext_strings.ExtStrings(), ext_math.ExtMath(), ext_optional.ExtOptional()],
)
_PLACE = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")


class Expression(Protocol):
    """A compiled expression."""

    @property
    def references(self) -> frozenset[str] | None:
        """The node ids it can read; None when that depends on the data."""

    @property
    def decides(self) -> bool:
        """Whether it can give true or false, as far as types are known without data."""

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The JSON value for these variables; an absent variable is null.

        Raises ExpressionError for every error of the evaluation, an exceeded budget included.
        """


@lru_cache(maxsize=4_096)
def compile_expression(text: str) -> Expression:
    """Check and compile CEL text. Raises ExpressionError that says what is wrong and where."""
    if not text.strip():
        raise ExpressionError("The expression is empty.")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"The expression has {len(text)} characters; at most {MAX_LENGTH} are allowed."
        )
    try:
        program = _ENVIRONMENT.compile(text)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ExpressionError(_compile_message(str(error))) from None
    return _CelExpression(text, program)


class _CelExpression:
    __slots__ = ("_program", "_reads", "_text")

    def __init__(self, text: str, program: Any) -> None:
        self._text = text
        self._program = program
        used = names(text)
        self._reads = tuple(name for name in VARIABLES if name in used)

    @property
    def references(self) -> frozenset[str] | None:
        return node_references(self._text)

    @property
    def decides(self) -> bool:
        return self._program.return_type().name() in ("BOOL", "DYN")

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        # CEL copies a variable whole when it is read, so the others are not even looked at.
        data = {name: readable(variables.get(name)) for name in self._reads}
        try:
            value = self._program.eval(data=data)
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
    return f"The expression does not compile {where}: {shorten(reason, 300)}"


def _runtime_message(text: str) -> str:
    return shorten(_STATUS.sub("", text.partition("\n")[0]), 300)
