"""Key expressions: what tells apart the runs that share slots (decisions C7)."""

from models.expressions.rules.cel_text import tokens
from models.expressions.rules.expressions import VARIABLES, ExpressionError, compile_expression


def key_problem(expression: str) -> str | None:
    """Why a key cannot be computed when a run is accepted, or None."""
    try:
        compile_expression(expression)
    except ExpressionError as error:
        return error.message
    before = ""
    for token in tokens(expression):
        known = token.kind == "name" and token.text in VARIABLES and before != "."
        if known and token.text != "trigger":
            return (
                "It can read only trigger, because it is evaluated before the run begins, but it"
                f" reads {token.text}."
            )
        before = token.text
    return None
