"""Proofs that an expression is small: the most its evaluation can cost, by its tree.

A bound holds for all data of a size. Values count as trees: what a value shares counts as often as
it is there, which is what turning it into JSON takes. A sum bounds a maximum, so that every bound
is a convex function of the size of the data. For such a bound `f`, what is done for each element
of a list costs at most `length * f(0) + f(size of the list)`.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from models.core.expressions.rules.syntax import COST, Message, children, kind_of, may_be_of_doubles

ELEMENT = 16
"""The size of one value of any kind; a character more is a size of 1."""

BUDGET = 240_000
"""The cost of what is evaluated at once. A cost of 1 takes up to 25 ns: this is 5 ms or so."""

_MOST_LOOPS = 4
"""Macros inside one another that are looked at; more are never small."""

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
    total = _Reading(data).read(root, {}, 0)
    return total.size + total.cost <= BUDGET


class _Reading:
    """Bounds for data of one extent."""

    def __init__(self, data: Extent) -> None:
        size = max(data.size, ELEMENT)
        self._data = Bound(size, size + _STEP, data.longest)

    def read(self, node: Message, local: Mapping[str, Bound], loops: int) -> Bound:
        kind = kind_of(node)
        match kind:
            case "const":
                text = node.const.string_value or node.const.bytes_value
                return Bound(ELEMENT + len(text), 1, 0)
            case "ident":
                return local.get(node.ident.name, self._data)
            case "select":
                operand = self.read(node.select.operand, local, loops)
                if node.select.test_only:
                    return Bound(ELEMENT, operand.cost + _STEP, 0)
                return self._part(node.select.operand, operand, local)
            case "list":
                parts = [self.read(element, local, loops) for element in node.list.elements]
                return _joined(parts, len(parts))
            case "struct":
                pairs = [(element.map_key, element.value) for element in node.struct.entries]
                parts = [self.read(part, local, loops) for pair in pairs for part in pair]
                return _joined(parts, len(pairs))
            case "call":
                called = self._call(node.call, local, loops)
                more = COST if may_be_of_doubles(node) else 0
                return called._replace(cost=called.cost + more)
            case "comprehension":
                return self._loop(node.comprehension, local, loops)
        return _ENDLESS

    def _part(self, node: Message, whole: Bound, local: Mapping[str, Bound]) -> Bound:
        """A part of a value. No list within the data is longer than its longest."""
        length = self._data.length if _is_data(node, local) else whole.size / ELEMENT
        return Bound(whole.size, whole.cost + _STEP, length)

    def _call(self, call: Message, local: Mapping[str, Bound], loops: int) -> Bound:
        target = [call.target] if call.HasField("target") else []
        nodes = [*target, *call.args]
        operands = [self.read(operand, local, loops) for operand in nodes]
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

    def _loop(self, loop: Message, local: Mapping[str, Bound], loops: int) -> Bound:
        """A macro: what it makes of an empty element for each, and once what of all of them."""
        if loops >= _MOST_LOOPS:
            return _ENDLESS
        over = self.read(loop.iter_range, local, loops)
        first = self.read(loop.accu_init, local, loops)
        within = {**local, loop.accu_var: Bound(first.size, 1, first.length)}
        size, cost, length = first.size, over.cost + first.cost + _STEP, first.length
        if over.length:
            empty, full = (
                _grown(loop.loop_step, loop.accu_var, self._reader(loop, within, size, loops + 1))
                for size in (0.0, over.size)
            )
            size += over.length * empty.size + full.size
            cost += over.length * (empty.cost + _STEP) + full.cost
            cost += _APPENDED * over.length * over.length
            length += over.length * empty.length + full.length
        within[loop.accu_var] = Bound(size, 1, length)
        result = self.read(loop.result, within, loops)
        return Bound(result.size, cost + result.cost, result.length)

    def _reader(
        self, loop: Message, local: Mapping[str, Bound], element: float, loops: int
    ) -> Callable[[Message], Bound]:
        names = {**local, loop.iter_var: Bound(element, 1, element / ELEMENT)}
        return lambda node: self.read(node, names, loops)


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
    """The most one iteration adds to the result called `name`; endless for what multiplies it."""
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
