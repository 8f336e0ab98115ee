"""Syntax trees of CEL texts (cel/expr/syntax.proto): reading, walking and rewriting them.

Macros such as `map` are spelled out in a tree as comprehensions.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from typing import Any, NamedTuple, TypeAlias

from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from models.core.values import InvalidValueError, all_digits, exact_number

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
    "ParsedExpr": {"expr": (2, "Expr"), "source_info": (3, "SourceInfo")},
    "SourceInfo": {"positions": (4, "*Position")},
    "Position": {"id": (1, "int64"), "offset": (2, "int64")},
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


RECORD_VALUES = frozenset({"data", "relations", "related", "computed", "system"})
"""The parts of a record that have the keys of fields."""

RECORD_MARK = "databaseId"
"""The key that tells a record from other maps that have one of those parts."""

_ORDERS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})

_UNUSED_IDS_OF_NULLS = 1_000_000


def with_nulls(serialized: bytes) -> bytes | None:
    """The serialized tree with null read like this; None where that changes nothing.

    Comparing with null by order (`<`, `<=`, `>`, `>=`) is false, as it is in filters. A field that
    a record holds no value of reads as null: `trigger.record.data.price`. CEL calls both an error,
    so a tree that has failed is evaluated once more with these readings written out in CEL's own
    functions.
    """
    tree = read_tree(serialized)
    writer = _NullsWriter(_UNUSED_IDS_OF_NULLS)
    writer.rewrite(tree.root)
    return tree.serialized() if writer.written else None


def _is_of_record(node: Message) -> bool:
    """True when a node selects what may be the value of a record's field: `x.data.price`."""
    if kind_of(node) != "select" or node.select.test_only:
        return False
    part = node.select.operand
    return (
        kind_of(part) == "select"
        and not part.select.test_only
        and part.select.field in RECORD_VALUES
    )


class _NullsWriter(TreeWriter):
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


COST = 160.0
"""The most that one operation costs more than it does in CEL, in the unit of `checks`."""

_EXACT = Context(prec=15, traps=[Inexact, InvalidOperation, DivisionByZero])
_UNUSED_IDS = 2_000_000
_WHOLE = re.compile(r"[+-]?[0-9]{16,}")
_CONVERTED = (("int64_value", 0), ("uint64_value", 0), ("string_value", ""))
_NO_DOUBLES = frozenset({"list", "struct"})
_GIVE_NO_DOUBLE = frozenset({"string", "size", "int", "uint", "bytes", "timestamp", "duration"})
EXACT = "@exact"
"""The function that gives its operand as it is, if a double holds it."""
DIGITS = "@digits"
"""The function that gives the text of a double."""
CLAUSE = re.compile(r"%(?:%|(?:\.\d+)?[sdfebxXo])")
"""A clause of `format`; `%%` takes no value."""


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
            raise ValueError(f"{shown} has more digits than a double supports") from None
    return value


def digits(value: float) -> str:
    """The text of a double, with every digit; only very large and small ones have an exponent."""
    if 1e-7 <= abs(value) < 1e21:
        return all_digits(Decimal(repr(value)))
    return repr(value) if value else "0"


def with_decimals(serialized: bytes) -> bytes | None:
    """The serialized tree with its arithmetic and texts in decimals; None where it has none.

    CEL computes in binary doubles. People write decimals, and so does JSON. So each sum,
    difference, product and quotient of two doubles is the one of the decimals they are written as,
    where that has at most 15 digits, as many as every double keeps: 0.1 + 0.2 is 0.3. Any other is
    the double that CEL gives: a third of 1.0, three times, is 1.0.

    `double(…)` of a whole number that no double holds is an error: it would be another number.
    Doubles in texts have all digits: `string` of CEL writes 1234567.5 as 1.2345675e+06, and `%s` of
    `format` as 1.23457e+06.
    """
    tree = read_tree(serialized)
    writer = _DecimalsWriter(_UNUSED_IDS)
    writer.rewrite(tree.root)
    return tree.serialized() if writer.written else None


class _DecimalsWriter(TreeWriter):
    def rewrite(self, node: Message) -> None:
        for child in children(node):
            self.rewrite(child)
        if may_be_of_doubles(node):
            self._operate(node)
        elif kind_of(node) == "call":
            match node.call.function:
                case "double":
                    self._convert(node)
                case "string" if not _is_no_double(node.call.args[0]):
                    node.CopyFrom(self._written(node.call.args[0], "string"))
                case "format" if kind_of(node.call.args[0]) == "list":
                    self._format(node)

    def _format(self, node: Message) -> None:
        clauses = CLAUSE.findall(node.call.target.const.string_value)
        values = node.call.args[0].list.elements
        texts = [clause for clause in clauses if clause != "%%"]
        for clause, value in zip(texts, values, strict=False):
            if clause == "%s" and not _is_no_double(value):
                value.CopyFrom(self._written(value))

    def _written(self, operand: Message, function: str | None = None) -> Message:
        """The text of a double; for another value what the function gives, or the value."""
        name = self.name("written")
        text = self.call(DIGITS, self.ident(name))
        value = self.call(function, self.ident(name)) if function else self.ident(name)
        is_double = self._has_type_of(name, "double_value", 0.0)
        return self.bound(name, operand, self.call("_?_:_", is_double, text, value))

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
