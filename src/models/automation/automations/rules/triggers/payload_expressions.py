"""Expressions that are evaluated before a run begins and can read only its trigger payload (C7)."""

from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import compile_expression
from models.core.expressions.rules.programs import Program, Type, environment

READABLE = ("trigger",)
"""The variables that these expressions can read."""

_ENVIRONMENT = environment(dict.fromkeys(READABLE, Type.ANY))


def early_problem(expression: str) -> str | None:
    """The reason why an expression cannot be evaluated before the run begins, or None."""
    try:
        compile_expression(expression)
    except ExpressionError as error:
        return error.message
    try:
        # The type check knows which names the expression itself binds.
        Program(_ENVIRONMENT, expression)
    except ExpressionError as error:
        return (
            "It can read only trigger, because it is evaluated before the run begins. "
            f"{error.message}"
        )
    return None
