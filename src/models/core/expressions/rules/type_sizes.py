"""The sizes of the types of an expression, which bound the time that the type check takes.

A macro over a map whose keys and values are its element doubles the type with every call, and the
check takes time and memory with it. Read from a tree that is parsed and not checked yet.
"""

from collections.abc import Mapping

from models.core.expressions.rules.syntax import Message, children, kind_of

LARGEST = 500
"""Parts of one type. What people write has types of a dozen."""


def largest_type(root: Message) -> int:
    """The parts of the largest type in a tree at most, or some number above `LARGEST`."""
    return _Reading().largest(root)


class _Reading:
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
