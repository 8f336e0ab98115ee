"""Arithmetic of decimals: 0.1 + 0.2 is 0.3, and 4.35 * 100.0 is 435.0.

CEL computes in binary doubles. People write decimals, and so does JSON. So each sum, difference,
product and quotient of two doubles is the one of the decimals they are written as, where that has
at most 15 digits, as many as every double keeps. Any other is the double that CEL gives: a third
of 1.0, three times, is 1.0.

`double(…)` of a whole number that no double holds is an error: it would be another number.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from typing import NamedTuple

from models.core.expressions.rules.syntax import (
    Message,
    TreeWriter,
    children,
    kind_of,
    read_tree,
)
from models.core.values import InvalidValueError, exact_number

COST = 160.0
"""The most that one operation costs more than it does in CEL, in the unit of `bounds`."""

_EXACT = Context(prec=15, traps=[Inexact, InvalidOperation, DivisionByZero])
_UNUSED_IDS = 2_000_000
_WHOLE = re.compile(r"[+-]?[0-9]{16,}")
_CONVERTED = (("int64_value", 0), ("uint64_value", 0), ("string_value", ""))
_NO_DOUBLES = frozenset({"list", "struct"})
_GIVE_NO_DOUBLE = frozenset({"string", "size", "int", "uint", "bytes", "timestamp", "duration"})
EXACT = "@exact"
"""The function that gives its operand as it is, if a double holds it."""


def _quotient(first: float, second: float) -> float:
    if second:
        return first / second
    if not first or math.isnan(first):
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1.0, second)


class Operation(NamedTuple):
    """One operator on two doubles: the function that replaces it, in decimals and in doubles."""

    function: str
    in_decimals: Callable[[Decimal, Decimal], Decimal]
    in_doubles: Callable[[float, float], float]

    def result(self, first: float, second: float) -> float:
        """The double that is written as the result of the decimals, if that is short enough.

        Zero has no sign.
        """
        try:
            return float(self.in_decimals(Decimal(repr(first)), Decimal(repr(second)))) + 0.0
        except (Inexact, InvalidOperation, DivisionByZero):
            return self.in_doubles(first, second)


OPERATIONS: Mapping[str, Operation] = {
    "_+_": Operation("@sum", _EXACT.add, operator.add),
    "_-_": Operation("@difference", _EXACT.subtract, operator.sub),
    "_*_": Operation("@product", _EXACT.multiply, operator.mul),
    "_/_": Operation("@quotient", _EXACT.divide, _quotient),
}


def may_be_of_doubles(node: Message) -> bool:
    """True for a call of an operator, unless its text tells that an operand is no double."""
    if kind_of(node) != "call" or node.call.function not in OPERATIONS:
        return False
    return not any(_is_no_double(operand) for operand in node.call.args)


def _is_no_double(node: Message) -> bool:
    kind = kind_of(node)
    if kind == "const":
        return not node.const.HasField("double_value")
    if kind == "call":
        function, operands = node.call.function, node.call.args
        is_sum = function in OPERATIONS and any(map(_is_no_double, operands))
        return is_sum or function in _GIVE_NO_DOUBLE
    return kind in _NO_DOUBLES


def exact(value: int | str) -> int | str:
    """A whole number, or a text, as it is. Raises ValueError for one that no double holds."""
    if isinstance(value, int) or _WHOLE.fullmatch(value):
        try:
            exact_number(Decimal(value))
        except InvalidValueError:
            shown = str(value)[:20]
            raise ValueError(f"{shown} has more digits than a double holds") from None
    return value


def with_decimals(serialized: bytes) -> bytes | None:
    """The serialized tree with its arithmetic in decimals; None where it has none."""
    tree = read_tree(serialized)
    writer = _Writer(_UNUSED_IDS)
    writer.rewrite(tree.root)
    return tree.serialized() if writer.written else None


class _Writer(TreeWriter):
    def rewrite(self, node: Message) -> None:
        for child in children(node):
            self.rewrite(child)
        if may_be_of_doubles(node):
            self._operate(node)
        elif kind_of(node) == "call" and node.call.function == "double":
            self._convert(node)

    def _convert(self, node: Message) -> None:
        (operand,), name = node.call.args, self.name("given")
        tests = [self._has_type_of(name, *one) for one in _CONVERTED]
        checked = self.call("double", self.call(EXACT, self.ident(name)))
        unchecked = self.call("double", self.ident(name))
        is_checked = self.call("_||_", self.call("_||_", *tests[:2]), tests[2])
        chosen = self.call("_?_:_", is_checked, checked, unchecked)
        node.CopyFrom(self.bound(name, operand, chosen))

    def _operate(self, node: Message) -> None:
        """Choose by the types of both operands, which only the data tells."""
        names = [self.name("first"), self.name("second")]
        tests = [self._has_type_of(name, "double_value", 0.0) for name in names]
        both = self.call("_&&_", *tests)
        chosen = self.call(OPERATIONS[node.call.function].function, *map(self.ident, names))
        other = self.call(node.call.function, *map(self.ident, names))
        decided = self.call("_?_:_", both, chosen, other)
        first, second = node.call.args
        node.CopyFrom(self.bound(names[0], first, self.bound(names[1], second, decided)))

    def _has_type_of(self, name: str, kind: str, value: object) -> Message:
        typed = self.call("type", self.constant(kind, value))
        return self.call("_==_", self.call("type", self.ident(name)), typed)
