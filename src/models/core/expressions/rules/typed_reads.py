"""The fields of databases that a CEL text reads, found in its parse tree with types of values.

A type says which database a value comes from: a record, a list of records, an object with the keys
of fields. It follows the value through selections, indexes, macros such as
`map`, conditions and fallbacks. A key that is computed when the text runs is in no result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from models.core.expressions.rules.cel_text import Token, tokens
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.programs import parsed
from models.core.expressions.rules.syntax import RECORD_VALUES, Message, kind_of


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with these members."""

    members: Mapping[str, "ValueType"]


@dataclass(frozen=True, slots=True)
class ListOf:
    element: "ValueType"


@dataclass(frozen=True, slots=True)
class FieldsOf:
    """An object whose keys are keys of fields of a database."""

    database: str


@dataclass(frozen=True, slots=True)
class ValueOf:
    """The value of a field."""

    database: str
    key: str


@dataclass(frozen=True, slots=True)
class KeyOf:
    """The key of a field of a database, as text."""

    database: str


@dataclass(frozen=True, slots=True)
class RecordIdOf:
    """The id of a record of a database."""

    database: str


ValueType: TypeAlias = Struct | ListOf | FieldsOf | ValueOf | KeyOf | RecordIdOf | None
"""None is a value of which nothing is known."""


@lru_cache(maxsize=1_024)
def record_of(database: str) -> Struct:
    return Struct({"id": RecordIdOf(database), **dict.fromkeys(RECORD_VALUES, FieldsOf(database))})


def member_of(value: ValueType, key: str) -> ValueType:
    """The type of the value under a key; `ValueOf` for the field of a record."""
    if isinstance(value, Struct):
        return value.members.get(key)
    return ValueOf(value.database, key) if isinstance(value, FieldsOf) else None


def element_of(value: ValueType) -> ValueType:
    """The type of the elements of a list, or of a field that holds one."""
    if isinstance(value, ValueOf):
        return value
    return value.element if isinstance(value, ListOf) else None


def with_keys(value: object, of: ValueType, database: str, keys: Mapping[str, str]) -> object:
    """A value of this type in which fields of a database have other keys."""
    match of:
        case Struct() if isinstance(value, dict):
            return {
                name: with_keys(item, of.members.get(name), database, keys)
                for name, item in value.items()
            }
        case ListOf() if isinstance(value, list):
            return [with_keys(item, of.element, database, keys) for item in value]
        case FieldsOf() if of.database == database and isinstance(value, dict):
            return {keys.get(name, name): item for name, item in value.items()}
        case KeyOf() if of.database == database and isinstance(value, str):
            return keys.get(value, value)
    return value


@dataclass(frozen=True, slots=True)
class Read:
    """A field, or one of its options, that a text names from `start` to `end`.

    `quoted` is true where it is written as a text, not as a name behind a dot.
    """

    database: str
    key: str
    start: int
    end: int
    option: str = ""
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Reads:
    """The type of the result of a text, and what it reads, from left to right."""

    result: ValueType = None
    reads: Sequence[Read] = ()


NOTHING = Reads()


def reads_of(text: str, variables: Mapping[str, ValueType]) -> Reads:
    """The reads of a text with these variables; none of a text that cannot be read."""
    if not any(name in text for name, value in variables.items() if value is not None):
        return NOTHING
    source = _source(text)
    if source is None:
        return NOTHING
    reader = _Reader(source)
    result = reader.type_of(source.root, variables)
    distinct = dict.fromkeys(sorted(reader.reads, key=lambda one: (one.start, one.option)))
    return Reads(result, tuple(distinct))


@dataclass(frozen=True, slots=True)
class _Source:
    root: Message
    read: Sequence[Token]
    places: Mapping[int, int]
    """The place among the tokens of each node, by its id."""


@lru_cache(maxsize=8_192)
def _source(text: str) -> _Source | None:
    try:
        message = parsed(text)
    except ExpressionError:
        return None
    read = tuple(tokens(text))
    starts = {token.start: place for place, token in enumerate(read)}
    places = {
        one.id: starts[one.offset] for one in message.source_info.positions if one.offset in starts
    }
    return _Source(message.expr, read, places)


_KEEPING = frozenset({"coalesce", "dyn", "or", "orValue", "optional.of", "value", "_+_"})
"""Calls whose result has the type of one of their operands."""
_IF = "_?_:_"
_OF_LISTS = frozenset({"reverse", "sort", "slice", "distinct", "flatten"})
_INDEXES = frozenset({"_[_]", "_[?_]", "_?._"})
_EQUALS = frozenset({"_==_", "_!=_"})
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NO_TOKEN = Token("mark", "", 0)
"""Stands for a key whose place is unknown: it is read, and cannot be written anew."""


@dataclass(slots=True)
class _Reader:
    source: _Source
    reads: list[Read] = field(default_factory=list)

    def type_of(self, node: Message, variables: Mapping[str, ValueType]) -> ValueType:
        """The type of a node; what it reads is added to `reads`."""
        match kind_of(node):
            case "ident":
                return variables.get(node.ident.name)
            case "select":
                operand = self.type_of(node.select.operand, variables)
                selected = self._selected(operand, node.select.field, node)
                return None if node.select.test_only else selected
            case "call":
                return self._called(node, variables)
            case "list":
                types = [self.type_of(one, variables) for one in node.list.elements]
                return ListOf(_first(types))
            case "struct":
                return self._struct(node, variables)
            case "comprehension":
                return self._comprehension(node, variables)
        return None

    def _struct(self, node: Message, variables: Mapping[str, ValueType]) -> ValueType:
        members: dict[str, ValueType] = {}
        for entry in node.struct.entries:
            self.type_of(entry.map_key, variables)
            value = self.type_of(entry.value, variables)
            if (key := _text(entry.map_key)) is not None:
                members[key] = value
        return Struct(members)

    def _comprehension(self, node: Message, variables: Mapping[str, ValueType]) -> ValueType:
        loop = node.comprehension
        ranged = self.type_of(loop.iter_range, variables)
        element = KeyOf(ranged.database) if isinstance(ranged, FieldsOf) else element_of(ranged)
        started = self.type_of(loop.accu_init, variables)
        inner = {**variables, loop.iter_var: element, loop.accu_var: None}
        self.type_of(loop.loop_condition, inner)
        step = self.type_of(loop.loop_step, inner)
        return self.type_of(loop.result, {**variables, loop.accu_var: step or started})

    def _called(self, node: Message, variables: Mapping[str, ValueType]) -> ValueType:
        call = node.call
        operands = [*([call.target] if call.HasField("target") else []), *call.args]
        types = [self.type_of(one, variables) for one in operands]
        if call.function in _INDEXES:
            key = _text(operands[1])
            return element_of(types[0]) if key is None else self._selected(types[0], key, node)
        if call.function in _EQUALS:
            self._compared(operands[0], types[1])
            self._compared(operands[1], types[0])
        elif call.function == "@in":
            self._compared(operands[0], types[1])
            self._compared(operands[1], types[0])
            if isinstance(types[1], ListOf):
                self._compared(operands[0], types[1].element)
            elif isinstance(types[1], FieldsOf):
                self._compared(operands[0], KeyOf(types[1].database))
        elif call.function in _KEEPING:
            return _first(types)
        elif call.function == _IF:
            return _first(types[1:])
        elif call.function in _OF_LISTS:
            return types[0]
        elif call.function in ("first", "last"):
            return element_of(types[0])
        return None

    def _compared(self, node: Message, other: ValueType) -> None:
        """A constant, or a list of them, beside a value that is an option or a key of a field."""
        if not isinstance(other, ValueOf | KeyOf):
            return
        parts = list(node.list.elements) if kind_of(node) == "list" else [node]
        for part in parts:
            text, place = _text(part), self.source.places.get(part.id)
            if text is None or place is None:
                continue
            token = self.source.read[place]
            at = (token.start, token.start + len(token.text))
            if isinstance(other, KeyOf):
                self.reads.append(Read(other.database, text, *at, quoted=True))
            else:
                self.reads.append(Read(other.database, other.key, *at, option=text, quoted=True))

    def _selected(self, operand: ValueType, key: str, node: Message) -> ValueType:
        value = member_of(operand, key)
        if isinstance(operand, FieldsOf):
            token = self._key_token(node) or _NO_TOKEN
            end = token.start + len(token.text)
            quoted = token.kind == "string"
            self.reads.append(Read(operand.database, key, token.start, end, quoted=quoted))
        return value

    def _key_token(self, node: Message) -> Token | None:
        """The token of the key that a node selects."""
        inner = node.select.operand if kind_of(node) == "select" else node.call.args[0]
        end = self._end(inner)
        if end is None:
            return None
        for token in self.source.read[end + 1 : end + 5]:
            if token.kind in ("name", "string"):
                return token
        return None

    def _end(self, node: Message) -> int | None:
        """The place of the last token of a node, the brackets around it included."""
        end = self._last_token(node)
        if end is None:
            return None
        while end + 1 < len(self.source.read) and self.source.read[end + 1].text == ")":
            end += 1
        return end

    def _last_token(self, node: Message) -> int | None:
        kind, place = kind_of(node), self.source.places.get(node.id)
        selects = kind == "select" and not node.select.test_only
        if selects or (kind == "call" and node.call.function in _INDEXES):
            # In `rows[size(rows) - 1]` the first name behind the bracket is no key.
            is_key = selects or _text(node.call.args[1]) is not None
            token = self._key_token(node) if is_key else None
            if token is None:
                return self._index_end(node)
            at = next(at for at, one in enumerate(self.source.read) if one is token)
            closes = self.source.read[at + 1 : at + 2]
            bracketed = token.kind == "string" and [one.text for one in closes] == ["]"]
            return at + 1 if bracketed else at
        if kind == "call" and node.call.function.startswith(("_", "@", "!", "-")):
            return self._end(node.call.args[-1])
        if place is None:
            return None
        return place if self.source.read[place].text not in _CLOSING else self._closing(place)

    def _index_end(self, node: Message) -> int | None:
        if kind_of(node) != "call":
            return None
        inner = self._end(node.call.args[0])
        return None if inner is None else self._closing(inner + 1)

    def _closing(self, opened: int) -> int | None:
        """The place of the bracket that closes the one at a place."""
        depth = 0
        for place in range(opened, len(self.source.read)):
            text = self.source.read[place].text
            depth += (text in _CLOSING) - (text in _CLOSING.values())
            if depth == 0:
                return place
        return None


def _text(node: Message) -> str | None:
    if kind_of(node) == "const" and node.const.HasField("string_value"):
        return str(node.const.string_value)
    return None


def _first(types: Sequence[ValueType]) -> ValueType:
    """The first type of which something is known."""
    return next((one for one in types if one not in (None, ListOf(None))), None) or next(
        (one for one in types if one is not None), None
    )


def renamed_in(text: str, reads: Sequence[Read], key: str) -> str | None:
    """The text with a key in place of each of these reads; None if the place of one is unknown."""
    for read in sorted(reads, key=lambda one: one.start, reverse=True):
        written = text[read.start : read.end]
        if not written:
            return None
        quote = written[0] if written[0] in "\"'" else '"'
        spelled = f"{quote}{key}{quote}" if read.quoted else key
        text = text[: read.start] + spelled + text[read.end :]
    return text
