"""Checks of an expression's tree: parts that fail, large types, and proofs of its size.

A bound is the most that an evaluation can cost. It holds for all data of a size. Values count as
trees: what a value shares counts as often as it is there, which is what turning it into JSON takes.
A sum bounds a maximum, so that every bound is a convex function of the size of the data. For such a
bound `f`, what is done for each element of a list costs at most `length * f(0) + f(size of the
list)`.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from models.core.expressions.rules import syntax
from models.core.expressions.rules.syntax import COST, Message, children, kind_of, may_be_of_doubles

ELEMENT = 16
"""The size of one value of any kind; a character more is a size of 1."""

BUDGET = 240_000
"""The cost of what is evaluated at once. A cost of 1 takes up to 25 ns: this is 5 ms or so."""

_STEP = 16
_APPENDED = 2
"""The cost of each element that is copied when a macro appends one to its result."""
_ANY_SCALAR = 64.0
"""More than any number, moment or duration takes as text."""


class Extent(NamedTuple):
    """The extent of data: its size as a tree, and the elements of its longest list or map."""

    size: float
    longest: float


class Bound(NamedTuple):
    """The most a value can have: its size, the cost of making it, and its number of elements."""

    size: float
    cost: float
    length: float


_ENDLESS = Bound(math.inf, math.inf, math.inf)


def extent_of(value: object) -> Extent | None:
    """The extent of a JSON value, in the next powers of two, few enough to remember each.

    None when it is too large for anything to be small with it.
    """
    size, longest = ELEMENT, 0
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        parts: Collection[object] = (item,)
        if isinstance(item, Mapping):
            size += sum(map(len, item)) + ELEMENT * len(item)
            parts = item.values()
        elif isinstance(item, list | tuple):
            parts = item
        longest = max(longest, len(parts))
        for part in parts:
            size += ELEMENT
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, dict | list | tuple):
                stack.append(part)
        if size > BUDGET:
            return None
    return Extent(1 << size.bit_length(), 1 << longest.bit_length())


def is_small(root: Message, data: Extent) -> bool:
    """True when evaluating a tree and reading its result stays within the budget for such data."""
    total = _Reading(data).read(root, {})
    return total.size + total.cost <= BUDGET


class _Reading:
    """Bounds for data of one extent."""

    def __init__(self, data: Extent) -> None:
        size = max(data.size, ELEMENT)
        self._data = Bound(size, size + _STEP, data.longest)

    def read(self, node: Message, local: Mapping[str, Bound]) -> Bound:
        kind = kind_of(node)
        match kind:
            case "const":
                text = node.const.string_value or node.const.bytes_value
                return Bound(ELEMENT + len(text), 1, 0)
            case "ident":
                return local.get(node.ident.name, self._data)
            case "select":
                operand = self.read(node.select.operand, local)
                if node.select.test_only:
                    return Bound(ELEMENT, operand.cost + _STEP, 0)
                return self._part(node.select.operand, operand, local)
            case "list":
                parts = [self.read(element, local) for element in node.list.elements]
                return _joined(parts, len(parts))
            case "struct":
                pairs = [(element.map_key, element.value) for element in node.struct.entries]
                parts = [self.read(part, local) for pair in pairs for part in pair]
                return _joined(parts, len(pairs))
            case "call":
                called = self._call(node.call, local)
                more = COST if may_be_of_doubles(node) else 0
                return called._replace(cost=called.cost + more)
            case "comprehension":
                return self._loop(node.comprehension, local)
        return _ENDLESS

    def _part(self, node: Message, whole: Bound, local: Mapping[str, Bound]) -> Bound:
        """A part of a value. No list within the data is longer than its longest."""
        length = self._data.length if _is_data(node, local) else whole.size / ELEMENT
        return Bound(whole.size, whole.cost + _STEP, length)

    def _call(self, call: Message, local: Mapping[str, Bound]) -> Bound:
        target = [call.target] if call.HasField("target") else []
        nodes = [*target, *call.args]
        operands = [self.read(operand, local) for operand in nodes]
        sizes = [operand.size for operand in operands]
        cost = _cost(operands)
        function = call.function
        if function in _PARTS:
            part = self._part(nodes[0], operands[0], local)
            return Bound(part.size, cost, part.length)
        if function in _CHOICES:
            return Bound(sum(sizes), cost, sum(operand.length for operand in operands))
        own = _CALLS.get(function)
        if own is None or (function == "matches" and kind_of(nodes[-1]) != "const"):
            return _ENDLESS
        size, added = own(sizes)
        return Bound(size, cost + added, size / ELEMENT)

    def _loop(self, loop: Message, local: Mapping[str, Bound]) -> Bound:
        """A macro: what it makes of an empty element for each, and once what of all of them."""
        over = self.read(loop.iter_range, local)
        first = self.read(loop.accu_init, local)
        within = {**local, loop.accu_var: Bound(first.size, 1, first.length)}
        size, cost, length = first.size, over.cost + first.cost + _STEP, first.length
        if over.length:
            empty, full = (
                _grown(loop.loop_step, loop.accu_var, self._reader(loop, within, size))
                for size in (0.0, over.size)
            )
            size += over.length * empty.size + full.size
            cost += over.length * (empty.cost + _STEP) + full.cost
            cost += _APPENDED * over.length * over.length
            length += over.length * empty.length + full.length
        within[loop.accu_var] = Bound(size, 1, length)
        result = self.read(loop.result, within)
        return Bound(result.size, cost + result.cost, result.length)

    def _reader(
        self, loop: Message, local: Mapping[str, Bound], element: float
    ) -> Callable[[Message], Bound]:
        names = {**local, loop.iter_var: Bound(element, 1, element / ELEMENT)}
        return lambda node: self.read(node, names)


def _is_data(node: Message, local: Mapping[str, Bound]) -> bool:
    """True when a node is a variable of the data or a part of one."""
    while True:
        match kind_of(node):
            case "ident":
                return node.ident.name not in local
            case "select":
                node = node.select.operand
            case "call" if node.call.function in _PARTS and node.call.args:
                node = node.call.args[0]
            case _:
                return False


def _grown(step: Message, name: str, read: Callable[[Message], Bound]) -> Bound:
    """The most one iteration adds to the result called `name`; endless for what multiplies it.

    Macros call their results alike, so one inside another is endless, too.
    """
    if kind_of(step) == "ident" and step.ident.name == name:
        return Bound(0, 1, 0)
    if kind_of(step) == "call":
        function, args = step.call.function, step.call.args
        if function == "_?_:_" and not _names(args[0], name):
            branches = [_grown(branch, name, read) for branch in args[1:]]
            return _sum([Bound(0, read(args[0]).cost, 0), *branches])
        if function in _GROWING and not _names(args[1], name):
            return _sum([_grown(args[0], name, read), read(args[1])])
    return _ENDLESS if _names(step, name) else read(step)


def _sum(bounds: list[Bound]) -> Bound:
    sizes, counts = [bound.size for bound in bounds], [bound.length for bound in bounds]
    return Bound(sum(sizes), _cost(bounds), sum(counts))


_GROWING = frozenset({"_+_", "_&&_", "_||_"})


def _cost(bounds: list[Bound]) -> float:
    return sum(bound.cost for bound in bounds) + _STEP


def _names(node: Message, name: str) -> bool:
    kind = kind_of(node)
    if kind == "ident":
        return bool(node.ident.name == name)
    if kind is None or kind == "const":
        return False
    return any(_names(child, name) for child in children(node))


def _joined(parts: list[Bound], length: int) -> Bound:
    return Bound(ELEMENT + sum(part.size for part in parts), _cost(parts), length)


_Call = Callable[[list[float]], tuple[float, float]]
"""The size of what a function gives and what it costs, by the sizes of its operands."""


def _scalar(sizes: list[float]) -> tuple[float, float]:
    """Gives one value; looks at all of the operands."""
    return _ANY_SCALAR, sum(sizes)


def _kept(sizes: list[float]) -> tuple[float, float]:
    """Gives no more than the operands together."""
    return sum(sizes), sum(sizes)


def _searched(sizes: list[float]) -> tuple[float, float]:
    """Looks at every place of one text for another."""
    return _ANY_SCALAR, sizes[0] * math.prod(sizes[1:2]) / 16


def _replaced(sizes: list[float]) -> tuple[float, float]:
    text, pattern, replacement, *_ = [*sizes, 0.0, 0.0]
    size = ELEMENT + (text + 1) * (replacement + 1)
    return size, size + text * pattern / 16


def _split(sizes: list[float]) -> tuple[float, float]:
    size = ELEMENT + (ELEMENT + 1) * (sizes[0] + 1)
    return size, 2 * size + sizes[0] * sum(sizes[1:2]) / 16


def _join(sizes: list[float]) -> tuple[float, float]:
    size = sizes[0] * (1 + sum(sizes[1:2]) / ELEMENT)
    return size, size


def _text(sizes: list[float]) -> tuple[float, float]:
    size = _ANY_SCALAR + 4 * sum(sizes)
    return size, size


def _searched_by_pattern(sizes: list[float]) -> tuple[float, float]:
    pattern = sizes[-1]
    return ELEMENT, math.inf if pattern > 128 else sizes[0] * pattern + 10_000


_PARTS = frozenset({"_[_]", "_?._", "_[?_]"})
_CHOICES = frozenset(
    ("dyn", "_+_", "_?_:_", "or", "orValue", "value", "optional.of", "optional.ofNonZeroValue")
)
"""Functions that give their operands as they are, one of them or all of them joined."""
_OPERATORS = ("!_", "-_", "_-_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_")
_CONVERSIONS = ("bool", "double", "int", "uint", "timestamp", "duration", "type", "size")
_MOMENTS = ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes")
_MATH = (
    *("abs", "ceil", "floor", "round", "trunc", "sign", "isNaN", "isInf", "isFinite", "sqrt"),
    *("bitAnd", "bitOr", "bitXor", "bitNot", "bitShiftLeft", "bitShiftRight"),
)
_CALLS: Mapping[str, _Call] = {
    **dict.fromkeys((*_OPERATORS, *_CONVERSIONS, "_&&_", "_||_", "@in", "_in_"), _scalar),
    **dict.fromkeys([f"get{part}" for part in (*_MOMENTS, "Seconds", "Milliseconds")], _scalar),
    **dict.fromkeys([f"math.{name}" for name in _MATH], _scalar),
    **dict.fromkeys(("math.@max", "math.@min"), _kept),
    **dict.fromkeys(
        ("startsWith", "endsWith", "hasValue", "optional.none", "@not_strictly_false"), _scalar
    ),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "reverse"), _kept),
    **dict.fromkeys(("charAt", "substring"), _kept),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _searched),
    **dict.fromkeys(("string", "bytes", "strings.quote"), _text),
    "replace": _replaced,
    "split": _split,
    "join": _join,
    "matches": _searched_by_pattern,
}
"""The most a function makes of operands of these sizes. Others, `format` too, are never small."""


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
    if name == "format" and (text := _text_of(node.call.target)) is not None:
        return _format_problem(text, arguments[0])
    template = next((text for names, text in _PROBES if names.fullmatch(name or "")), None)
    argument = _text_of(arguments[0]) if len(arguments) == 1 else None
    if template is None or argument is None:
        return None
    outcome = of_text(template.format(json.dumps(argument, ensure_ascii=False)))
    return None if outcome is None else outcome.problem


def _format_problem(text: str, values: Message) -> str | None:
    if "%" in syntax.CLAUSE.sub("", text):
        return "unrecognized formatting clause"
    needed = sum(clause != "%%" for clause in syntax.CLAUSE.findall(text))
    too_few = kind_of(values) == "list" and len(values.list.elements) < needed
    return "the list is shorter than the format" if too_few else None


def _function(node: Message) -> str | None:
    return str(node.call.function) if kind_of(node) == "call" else None


def _text_of(node: Message) -> str | None:
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
    argument = _text_of(part.call.args[0]) if len(part.call.args) == 1 else None
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
