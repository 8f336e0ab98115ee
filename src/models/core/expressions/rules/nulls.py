"""The meaning of null in an expression that fails on it otherwise.

Comparing with null by order (`<`, `<=`, `>`, `>=`) is false, as it is in filters. A field that a
record holds no value of reads as null: `trigger.record.data.price`. CEL calls both an error, so a
tree that has failed is evaluated once more with these readings written out in CEL's own functions.
"""

from models.core.expressions.rules.syntax import Expr, Message, children, kind_of, read_tree

VALUES = frozenset({"data", "relations", "related", "computed", "system"})
"""The parts of a record that have the keys of fields."""

RECORD_MARK = "databaseId"
"""The key that tells a record from other maps that have one of those parts."""

_ORDERS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_UNUSED_IDS = 1_000_000
"""Ids of new nodes: nothing is known about them, so their functions are found by their values."""


def with_nulls(serialized: bytes) -> bytes | None:
    """The serialized tree with null read like this; None where that changes nothing."""
    tree = read_tree(serialized)
    writer = _Writer()
    writer.rewrite(tree.root)
    return tree.serialized() if writer.written else None


def _is_of_record(node: Message) -> bool:
    """True when a node selects what may be the value of a record's field: `x.data.price`."""
    if kind_of(node) != "select" or node.select.test_only:
        return False
    part = node.select.operand
    return kind_of(part) == "select" and not part.select.test_only and part.select.field in VALUES


class _Writer:
    def __init__(self) -> None:
        self.written = 0

    def rewrite(self, node: Message) -> None:
        for child in children(node):
            self.rewrite(child)
        if kind_of(node) == "call" and node.call.function in _ORDERS:
            self._order(node)
        elif _is_of_record(node):
            self._field(node)

    def _order(self, node: Message) -> None:
        left, right = self._name("left"), self._name("right")
        is_null = [self._call("_==_", self._ident(name), self._null()) for name in (left, right)]
        compared = self._call(node.call.function, self._ident(left), self._ident(right))
        decided = self._call("_?_:_", self._call("_||_", *is_null), self._false(), compared)
        first, second = node.call.args
        node.CopyFrom(self._bound(left, first, self._bound(right, second, decided)))

    def _field(self, node: Message) -> None:
        holder = self._name("holder")
        part, field = node.select.operand.select, node.select.field
        marked = self._select(self._ident(holder), RECORD_MARK, test_only=True)
        of_part = self._select(self._ident(holder), part.field)
        held = self._select(of_part, field, test_only=True)
        missing = self._call("_&&_", marked, self._call("!_", held))
        value = self._call("_?_:_", missing, self._null(), self._select(of_part, field))
        node.CopyFrom(self._bound(holder, part.operand, value))

    def _name(self, word: str) -> str:
        self.written += 1
        return f"@{word}{self.written}"

    def _node(self) -> Message:
        self.written += 1
        return Expr(id=_UNUSED_IDS + self.written)

    def _ident(self, name: str) -> Message:
        node = self._node()
        node.ident.name = name
        return node

    def _null(self) -> Message:
        node = self._node()
        node.const.null_value = 0
        return node

    def _false(self) -> Message:
        node = self._node()
        node.const.bool_value = False
        return node

    def _call(self, function: str, *operands: Message) -> Message:
        node = self._node()
        node.call.function = function
        node.call.args.extend(operands)
        return node

    def _select(self, operand: Message, field: str, *, test_only: bool = False) -> Message:
        node = self._node()
        node.select.operand.CopyFrom(operand)
        node.select.field = field
        node.select.test_only = test_only
        return node

    def _bound(self, name: str, value: Message, within: Message) -> Message:
        """A tree in which a name stands for a value, which is evaluated once: a loop of nothing."""
        node = self._node()
        loop = node.comprehension
        loop.iter_var, loop.accu_var = "#unused", name
        loop.iter_range.CopyFrom(self._node())
        loop.iter_range.list.SetInParent()
        loop.accu_init.CopyFrom(value)
        loop.loop_condition.CopyFrom(self._false())
        loop.loop_step.CopyFrom(self._ident(name))
        loop.result.CopyFrom(within)
        return node
