"""Key expressions: what tells apart the runs that share slots (decisions C7)."""

from models.expressions.rules.cel_text import is_field, tokens
from models.expressions.rules.expressions import VARIABLES, ExpressionError, compile_expression


def key_problem(expression: str) -> str | None:
    """Why a key cannot be computed when a run is accepted, or None."""
    try:
        compile_expression(expression)
    except ExpressionError as error:
        return error.message
    read = list(tokens(expression))
    for index, token in enumerate(read):
        known = token.kind == "name" and token.text in VARIABLES and not is_field(read, index)
        if known and token.text != "trigger":
            return (
                "It can read only trigger, because it is evaluated before the run begins, but it"
                f" reads {token.text}."
            )
    return None
