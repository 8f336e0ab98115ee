"""The syntax tree of a CEL text, in the messages that CEL defines for it (cel/expr/syntax.proto).

Macros such as `map` are spelled out in it as comprehensions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

_PACKAGE = "cel.expr"
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Expr": {
        "id": (2, "int64"),
        "const": (3, "Constant"),
        "ident": (4, "Ident"),
        "select": (5, "Select"),
        "call": (6, "Call"),
        "list": (7, "CreateList"),
        "struct": (8, "CreateStruct"),
        "comprehension": (9, "Comprehension"),
    },
    "Constant": {
        "null_value": (1, "int64"),
        "bool_value": (2, "bool"),
        "int64_value": (3, "int64"),
        "uint64_value": (4, "uint64"),
        "double_value": (5, "double"),
        "string_value": (6, "string"),
        "bytes_value": (7, "bytes"),
    },
    "Ident": {"name": (1, "string")},
    "Select": {"operand": (1, "Expr"), "field": (2, "string"), "test_only": (3, "bool")},
    "Call": {"target": (1, "Expr"), "function": (2, "string"), "args": (3, "*Expr")},
    "CreateList": {"elements": (1, "*Expr")},
    "Entry": {"map_key": (3, "Expr"), "value": (4, "Expr")},
    "CreateStruct": {"entries": (2, "*Entry")},
    "Comprehension": {
        "iter_var": (1, "string"),
        "iter_range": (2, "Expr"),
        "accu_var": (3, "string"),
        "accu_init": (4, "Expr"),
        "loop_condition": (5, "Expr"),
        "loop_step": (6, "Expr"),
        "result": (7, "Expr"),
    },
    "ParsedExpr": {"expr": (2, "Expr")},
    "CheckedExpr": {"expr": (4, "Expr")},
}
"""The fields that are read here; the others of a message are kept as they are."""

_UNIONS = ("Expr", "Constant")
_SCALARS = {
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}


def _message(name: str) -> DescriptorProto:
    described = DescriptorProto(name=name)
    if name in _UNIONS:
        described.oneof_decl.add(name="kind")
    for field_name, (number, kind) in _MESSAGES[name].items():
        repeated, type_name = kind.startswith("*"), kind.removeprefix("*")
        field = described.field.add(name=field_name, number=number)
        field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
        if type_name in _SCALARS:
            field.type = _SCALARS[type_name]
        else:
            field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"
        if name in _UNIONS and field_name != "id":
            field.oneof_index = 0
    return described


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="cel/expr/read.proto", package=_PACKAGE, syntax="proto3")
    file.message_type.extend(_message(name) for name in _MESSAGES)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASS = _classes()
_ROOTS = {f"type.googleapis.com/{_PACKAGE}.{name}": name for name in ("ParsedExpr", "CheckedExpr")}

Message: TypeAlias = Any
"""A message of `_MESSAGES`, whose class is made of it."""

Expr: Any = _CLASS["Expr"]
"""One node of a tree; `kind_of` says which of its fields is set."""


class Tree(NamedTuple):
    """The library's serialization: the tree, and what the library found out about it."""

    url: str
    message: Message

    @property
    def root(self) -> Message:
        """The node of the whole text."""
        return self.message.expr

    def serialized(self) -> bytes:
        """The form that the library reads back."""
        packed = any_pb2.Any(type_url=self.url, value=self.message.SerializeToString())
        return packed.SerializeToString()


def read_tree(serialized: bytes) -> Tree:
    """The tree of a parsed or checked text in the form of the library."""
    packed = any_pb2.Any.FromString(serialized)
    message = _CLASS[_ROOTS[packed.type_url]].FromString(packed.value)
    return Tree(packed.type_url, message)


def kind_of(node: Message) -> str | None:
    """`const`, `ident`, `select`, `call`, `list`, `struct` or `comprehension`."""
    kind: str | None = node.WhichOneof("kind")
    return kind


def children(node: Message) -> list[Message]:
    match kind_of(node):
        case "select":
            return [node.select.operand]
        case "list":
            return list(node.list.elements)
        case "struct":
            return [part for entry in node.struct.entries for part in (entry.map_key, entry.value)]
        case "call":
            target = [node.call.target] if node.call.HasField("target") else []
            return [*target, *node.call.args]
        case "comprehension":
            parts = ("iter_range", "accu_init", "loop_condition", "loop_step", "result")
            return [getattr(node.comprehension, part) for part in parts]
    return []


class TreeWriter:
    """New nodes of a tree. `written` counts them, and gives them names and ids of their own."""

    def __init__(self, first_id: int) -> None:
        self.written = 0
        self._first_id = first_id

    def name(self, word: str) -> str:
        """A name that no text can have."""
        self.written += 1
        return f"@{word}{self.written}"

    def node(self) -> Message:
        """A node whose id the library knows nothing about: it finds functions by their values."""
        self.written += 1
        return Expr(id=self._first_id + self.written)

    def ident(self, name: str) -> Message:
        node = self.node()
        node.ident.name = name
        return node

    def constant(self, kind: str, value: object) -> Message:
        """A constant, by the name of its field in `Constant`."""
        node = self.node()
        setattr(node.const, kind, value)
        return node

    def call(self, function: str, *operands: Message) -> Message:
        node = self.node()
        node.call.function = function
        node.call.args.extend(operands)
        return node

    def bound(self, name: str, value: Message, within: Message) -> Message:
        """A tree in which a name stands for a value, which is evaluated once: a loop of nothing."""
        node = self.node()
        loop = node.comprehension
        loop.iter_var, loop.accu_var = "#unused", name
        loop.iter_range.CopyFrom(self.node())
        loop.iter_range.list.SetInParent()
        loop.accu_init.CopyFrom(value)
        loop.loop_condition.CopyFrom(self.constant("bool_value", False))
        loop.loop_step.CopyFrom(self.ident(name))
        loop.result.CopyFrom(within)
        return node
