"""The library's words about an expression, as its author reads them."""

import re
from collections.abc import Collection

from models.core.expressions.rules.functions import FUNCTIONS
from models.core.nearest import known

_LONGEST_REASON = 300
_PLACE = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)' \(in container ''\)")


def compile_message(text: str, expression: str, variables: Collection[str]) -> str:
    """The first error, with its place, and what there is in place of a name that is not."""
    place = _PLACE.search(text)
    if place is None:
        return f"The expression does not compile: {runtime_message(text)}"
    line, column, reason = place.groups()
    where = f"at line {line}, column {column}" if int(line) > 0 else "as a whole"
    undeclared = _UNDECLARED.search(reason)
    if undeclared is not None:
        name = undeclared[1]
        reason = f"undeclared reference to '{name}'{_instead(name, expression, variables)}"
    return f"The expression does not compile {where}: {quoted(reason)}"


def _instead(name: str, expression: str, variables: Collection[str]) -> str:
    if re.search(rf"\b{re.escape(name)}\s*\(", expression):
        return f"; {known(name, (one.name for one in FUNCTIONS))}"
    if not variables:
        return ""
    # `node` is meant by `node.ok.status`, unless the variables are themselves `record.price`.
    dotted = any("." in one for one in variables)
    return f"; {known(name if dotted else name.partition('.')[0], variables)}"


def runtime_message(text: str) -> str:
    """The words of the library against a value."""
    return quoted(_STATUS.sub("", text.partition("\n")[0]))


def quoted(text: str) -> str:
    """Words of the library about a client's text: printable and bounded."""
    shown = text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in shown)
