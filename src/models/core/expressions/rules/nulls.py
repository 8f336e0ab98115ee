"""The meaning of null in an expression that fails on it otherwise.

Comparing with null by order (`<`, `<=`, `>`, `>=`) is false, as it is in filters. A field that a
record holds no value of reads as null: `trigger.record.data.price`. CEL calls both an error, so a
tree that has failed is evaluated once more with these readings written out in CEL's own functions.
"""

from models.core.expressions.rules.syntax import (
    Message,
    TreeWriter,
    children,
    kind_of,
    read_tree,
)

VALUES = frozenset({"data", "relations", "related", "computed", "system"})
"""The parts of a record that have the keys of fields."""

RECORD_MARK = "databaseId"
"""The key that tells a record from other maps that have one of those parts."""

_ORDERS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_UNUSED_IDS = 1_000_000


def with_nulls(serialized: bytes) -> bytes | None:
    """The serialized tree with null read like this; None where that changes nothing."""
    tree = read_tree(serialized)
    writer = _Writer(_UNUSED_IDS)
    writer.rewrite(tree.root)
    return tree.serialized() if writer.written else None


def _is_of_record(node: Message) -> bool:
    """True when a node selects what may be the value of a record's field: `x.data.price`."""
    if kind_of(node) != "select" or node.select.test_only:
        return False
    part = node.select.operand
    return kind_of(part) == "select" and not part.select.test_only and part.select.field in VALUES


class _Writer(TreeWriter):
    def rewrite(self, node: Message) -> None:
        for child in children(node):
            self.rewrite(child)
        if kind_of(node) == "call" and node.call.function in _ORDERS:
            self._order(node)
        elif _is_of_record(node):
            self._field(node)

    def _order(self, node: Message) -> None:
        left, right = self.name("left"), self.name("right")
        is_null = [self.call("_==_", self.ident(name), self._null()) for name in (left, right)]
        compared = self.call(node.call.function, self.ident(left), self.ident(right))
        decided = self.call("_?_:_", self.call("_||_", *is_null), self._false(), compared)
        first, second = node.call.args
        node.CopyFrom(self.bound(left, first, self.bound(right, second, decided)))

    def _field(self, node: Message) -> None:
        holder = self.name("holder")
        part, field = node.select.operand.select, node.select.field
        marked = self._select(self.ident(holder), RECORD_MARK, test_only=True)
        of_part = self._select(self.ident(holder), part.field)
        held = self._select(of_part, field, test_only=True)
        missing = self.call("_&&_", marked, self.call("!_", held))
        value = self.call("_?_:_", missing, self._null(), self._select(of_part, field))
        node.CopyFrom(self.bound(holder, part.operand, value))

    def _null(self) -> Message:
        return self.constant("null_value", 0)

    def _false(self) -> Message:
        return self.constant("bool_value", False)

    def _select(self, operand: Message, field: str, *, test_only: bool = False) -> Message:
        node = self.node()
        node.select.operand.CopyFrom(operand)
        node.select.field = field
        node.select.test_only = test_only
        return node
