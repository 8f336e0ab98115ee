"""Checks of an expression's tree: constant parts that fail, types that are too large."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from models.core.expressions.rules.syntax import Message, children, kind_of


class Outcome(NamedTuple):
    """The value of a part, or the library's words against it."""

    value: object = None
    problem: str | None = None


OfPart = Callable[[Message], Outcome | None]
OfText = Callable[[str], Outcome | None]
"""The outcome without data; None where it shows nothing."""

_EVALUATED = frozenset(("call", "select", "comprehension"))
_DIVISIONS = frozenset(("_/_", "_%_"))
_NUMERIC = _DIVISIONS | {"_+_", "_-_", "_*_"}
_BRANCHING = frozenset(("_?_:_", "_&&_", "_||_"))
_DIVIDED_BY_ZERO = "divide by zero"
_DIVIDES = "The expression divides by zero."
_ZONED = re.compile(r"get(FullYear|Month|Date|DayOf\w+|Hours|Minutes|Seconds|Milliseconds)")
_CLAUSE = re.compile(r"%(?:%|(?:\.\d+)?[sdfebxXo])")
_HINTS = {
    "duration": 'enter a duration such as "36h" or "1h30m".',
    "timestamp": 'enter a timestamp with an offset such as "2026-01-31T09:00:00Z".',
}
_PROBES = (
    (re.compile("matches"), '"".matches({})'),
    (_ZONED, 'timestamp("2000-01-01T00:00:00Z").getHours({})'),
)
"""Calls whose argument fails with any target."""


def constant_problem(node: Message, of_part: OfPart, of_text: OfText) -> str | None:
    """The reason for an expression to have no value ever, as far as its constants tell.

    A part that fails is refused wherever it is, in a branch too: each time it is evaluated, it
    fails. Only the largest constant part counts, so that `false ? duration("1mo") : duration("1h")`
    is accepted. A branch may divide by zero: CEL has no other way to end with an error, as in `ok ?
    1 : 1 / 0`.
    """
    outcome = None
    if kind_of(node) in _EVALUATED and _is_constant(node, frozenset()):
        outcome = of_part(node)
    problem = _call_problem(node, outcome, of_part, of_text)
    if outcome is not None and problem is None:
        return None
    if problem is not None and _is_named(node):
        return _sentence(node, problem)
    # A part of it may say more.
    branches = node.call.args[1:] if _function(node) in _BRANCHING else ()
    for child in children(node):
        deeper = constant_problem(child, of_part, of_text)
        if deeper and not (deeper == _DIVIDES and child in branches):
            return deeper
    return None if problem is None else _sentence(node, problem)


def _call_problem(
    node: Message, outcome: Outcome | None, of_part: OfPart, of_text: OfText
) -> str | None:
    if outcome is not None and outcome.problem is not None:
        return outcome.problem
    value = None if outcome is None else outcome.value
    if isinstance(value, float) and not math.isfinite(value) and _function(node) in _NUMERIC:
        return _DIVIDED_BY_ZERO
    return None if _function(node) is None else _probed(node, of_part, of_text)


def _is_constant(node: Message, bound: frozenset[str]) -> bool:
    """True for a part that reads no variable but those it binds itself."""
    kind = kind_of(node)
    if kind == "ident":
        return node.ident.name in bound
    if kind == "comprehension":
        loop = node.comprehension
        # What it goes over is read before its variables are bound.
        if not all(_is_constant(part, bound) for part in (loop.iter_range, loop.accu_init)):
            return False
        inside = bound | {loop.iter_var, loop.accu_var}
        parts = (loop.loop_condition, loop.loop_step, loop.result)
        return all(_is_constant(part, inside) for part in parts)
    return kind is not None and all(_is_constant(child, bound) for child in children(node))


def _probed(node: Message, of_part: OfPart, of_text: OfText) -> str | None:
    """The reason for a call to fail with any data, as far as a constant argument tells."""
    name, arguments = _function(node), list(node.call.args)
    if name in _DIVISIONS and _is_constant(arguments[-1], frozenset()):
        outcome = of_part(arguments[-1])
        divisor = None if outcome is None else outcome.value
        is_number = isinstance(divisor, int | float) and not isinstance(divisor, bool)
        return _DIVIDED_BY_ZERO if is_number and not divisor else None
    if name == "format" and (text := _text(node.call.target)) is not None:
        return _format_problem(text, arguments[0])
    template = next((text for names, text in _PROBES if names.fullmatch(name or "")), None)
    argument = _text(arguments[0]) if len(arguments) == 1 else None
    if template is None or argument is None:
        return None
    outcome = of_text(template.format(json.dumps(argument, ensure_ascii=False)))
    return None if outcome is None else outcome.problem


def _format_problem(text: str, values: Message) -> str | None:
    if "%" in _CLAUSE.sub("", text):
        return "unrecognized formatting clause"
    needed = sum(clause != "%%" for clause in _CLAUSE.findall(text))
    too_few = kind_of(values) == "list" and len(values.list.elements) < needed
    return "the list is shorter than the format" if too_few else None


def _function(node: Message) -> str | None:
    return str(node.call.function) if kind_of(node) == "call" else None


def _text(node: Message) -> str | None:
    """The text that a node is, if it is the constant of one."""
    if kind_of(node) != "const" or node.const.WhichOneof("kind") != "string_value":
        return None
    return str(node.const.string_value)


def _is_named(node: Message) -> bool:
    """True for a call that its author wrote as one, and not for an operator."""
    name = _function(node)
    return name is not None and name[0].isalpha() and name != "dyn"


def _sentence(part: Message, problem: str) -> str:
    if problem in {_DIVIDED_BY_ZERO, "modulus by zero"}:
        return _DIVIDES
    name = _function(part)
    if name is None or not _is_named(part):
        return f"A part of the expression always fails: {problem}"
    argument = _text(part.call.args[0]) if len(part.call.args) == 1 else None
    shown = "…" if argument is None else json.dumps(argument[:64], ensure_ascii=False)
    return f"{name}({shown}) always fails: {_HINTS.get(name, problem)}"


LARGEST = 500
"""Parts of one type. What people write has types of a dozen."""


def largest_type(root: Message) -> int:
    """The parts of the largest type in a tree at most, or some number above `LARGEST`.

    A macro over a map whose keys and values are its element doubles the type with every call, and
    the type check takes time and memory with it. The tree is parsed and not checked yet.
    """
    return _TypesReading().largest(root)


class _TypesReading:
    def __init__(self) -> None:
        self._largest = 0

    def largest(self, root: Message) -> int:
        self._size(root, {})
        return self._largest

    def _size(self, node: Message, local: Mapping[str, int]) -> int:
        if self._largest > LARGEST:
            return 1
        size = self._own(node, local)
        self._largest = max(self._largest, size)
        return size

    def _own(self, node: Message, local: Mapping[str, int]) -> int:
        match kind_of(node):
            case "ident":
                return local.get(node.ident.name, 1)
            case "list" | "call":
                return 1 + self._most(children(node), local)
            case "struct":
                entries = node.struct.entries
                keys = self._most([entry.map_key for entry in entries], local)
                return 1 + keys + self._most([entry.value for entry in entries], local)
            case "select":
                return self._size(node.select.operand, local)
            case "comprehension":
                return self._of_macro(node.comprehension, local)
        return 1

    def _most(self, nodes: list[Message], local: Mapping[str, int]) -> int:
        return max((self._size(node, local) for node in nodes), default=0)

    def _of_macro(self, macro: Message, local: Mapping[str, int]) -> int:
        element = self._size(macro.iter_range, local)
        first = self._size(macro.accu_init, local)
        within = {**local, macro.iter_var: element, macro.accu_var: first}
        grown = max(first, self._size(macro.loop_step, within))
        return self._size(macro.result, {**within, macro.accu_var: grown})
