"""Filters of nodes, over paths into variables, and of triggers, as CEL text or a tree.

The filter of a trigger is asked of a payload. Both of its forms speak of the parts of the payload
by their names: `record`, `before`, `changedKeys`, `actor`, or of all of it as `trigger`. A leaf of
a filter tree names a field of the record by its key, and then means what it means in a query. Or it
is a path into the parts of the payload, or into the value of a field, and is judged by the JSON
value it finds.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.language.bindings import is_binding
from models.automation.automations.rules.language.paths import Path, compile_path
from models.automation.automations.rules.language.static_reads import never_there
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import free_names, paths, tokens
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import VARIABLES, Reads
from models.core.expressions.rules.programs import Program, Type, environment
from models.core.filters import evaluation, grammar
from models.core.filters.evaluation import holds
from models.core.values import InvalidValueError, is_timezone
from models.data.fields.rules.fields import FieldSpecs
from models.data.records.rules.query.filters import FieldLeaves, Leaf, has_form, leaf_holds
from runtime.redaction import without_named_secrets


@dataclass(frozen=True, slots=True)
class PathLeaf:
    """An operator over the JSON value at a path.

    Days begin in the time zone of the leaf, by default UTC.
    """

    path: Path
    op: grammar.Op
    operand: Any
    zone: ZoneInfo

    def holds(self, variables: JsonObject, now: datetime) -> bool:
        """True when it holds for the variables now.

        Raises BindingError for an operand that cannot be read, and for data too large to search.
        """
        found = self.path.get(variables)
        try:
            return evaluation.passes(self.op, found, self.operand, now, self.zone)
        except InvalidValueError as error:
            raise BindingError(f'The value of "{self.op}" {error}.') from None


def matches(tree: object, variables: Mapping[str, Any], now: datetime) -> bool:
    """True when the variables satisfy the filter now.

    Raises BindingError for a tree that is none.
    """
    try:
        read = grammar.read_tree(tree, read_path_leaf)
    except grammar.FilterError as error:
        raise BindingError(f"Invalid filter: {error}.") from None
    known = dict(variables)
    return holds(read, lambda leaf: leaf.holds(known, now))


def filter_problems(
    tree: object, variables: Collection[str] = VARIABLES
) -> Iterator[tuple[str, str]]:
    """The problems of a filter, each as path and sentence, before any value is known.

    Paths begin with one of the variables.
    """

    def read(raw: grammar.RawLeaf, path: str) -> grammar.Filter[PathLeaf]:
        leaf = read_path_leaf(raw, path)
        first, _ = compile_path(raw["field"]).split()
        if first not in variables:
            raise grammar.FilterError((path, f'Unknown variable "{shorten(first)}" in "field".'))
        check_path_operand(raw, path)
        return leaf

    try:
        grammar.read_tree(tree, read)
    except grammar.FilterError as error:
        yield from error.problems


def read_path_leaf(raw: grammar.RawLeaf, path: str) -> grammar.Filter[PathLeaf]:
    """The leaf at a path of the filter. Raises FilterError."""
    if "op" not in raw or not isinstance(raw["field"], str):
        raise grammar.FilterError(
            (path, "Use {field, op, value}, where field is a path such as trigger.price.")
        )
    op = raw["op"]
    if not isinstance(op, str) or op not in set(grammar.Op):
        known = ", ".join(grammar.Op)
        raise grammar.FilterError((path, f'Unknown operator "{shorten(str(op))}"; known: {known}.'))
    zone = raw.get("timezone")
    if zone is not None and not (isinstance(zone, str) and is_timezone(zone)):
        raise grammar.FilterError((path, '"timezone" is an IANA time zone such as Europe/Berlin.'))
    try:
        field_path = compile_path(raw["field"])
        field_path.split()
    except BindingError as error:
        raise grammar.FilterError((path, error.message)) from None
    here, operand = ZoneInfo(zone or "UTC"), raw.get("value")
    return grammar.positive_leaf(
        grammar.Op(op), lambda positive: PathLeaf(field_path, positive, operand, here)
    )


def check_path_operand(raw: grammar.RawLeaf, path: str) -> None:
    """Raises FilterError for an operand that says nothing; what is bound is known later."""
    operand = raw.get("value")
    if is_binding(operand):
        return
    try:
        evaluation.check_operand(grammar.Op(raw["op"]), operand)
    except InvalidValueError as error:
        raise grammar.FilterError(
            (f"{path}.value", f'The value of "{raw["op"]}" {error}.')
        ) from None


CHANGE = ("record", "before", "changedKeys", "actor", "trigger")
"""The variables that the filter of a change may read."""
STATE = ("record",)
"""The variable that the filter of a state may read, for it is asked before and after a change."""

_VALUES = ("system", "computed", "relations", "data")
"""The parts of a record that hold the values of its fields."""

_ENVIRONMENTS: dict[tuple[str, ...], Any] = {
    given: environment(dict.fromkeys(given, Type.ANY)) for given in (CHANGE, STATE)
}

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)

_Leaf = Leaf | PathLeaf


@dataclass(frozen=True, slots=True)
class Asked:
    """The facts a filter is asked with: the fields of the database, and the time."""

    fields: FieldSpecs
    now: datetime


def filter_is_wrong(predicate: object, variables: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Reasons why a filter cannot be evaluated, as far as it tells without data: path, sentence."""
    if isinstance(predicate, str):
        try:
            program, _ = _program(predicate, variables)
            program.require_value()
            if program.type not in {"BOOL", "DYN"}:
                yield "filter", "The expression must return true or false."
        except BindingError as error:
            yield "filter", error.message
    elif predicate is not None:
        yield from _tree_problems(predicate, _Leaves(variables, None, _ANY_TIME, checked=True))


def field_problems(
    predicate: object, variables: tuple[str, ...], fields: FieldSpecs
) -> Iterator[tuple[str, str]]:
    """The problems of the fields a filter names, given those there are: path, sentence."""
    if isinstance(predicate, str):
        yield from (("filter", message) for message in never_there(predicate, variables, fields))
    elif predicate is not None and not any(filter_is_wrong(predicate, variables)):
        yield from _tree_problems(predicate, _Leaves(variables, fields, _ANY_TIME, checked=True))


def _tree_problems(given: object, leaves: "_Leaves") -> Iterator[tuple[str, str]]:
    try:
        grammar.read_tree(given, leaves.read)
    except grammar.FilterError as error:
        yield from error.problems


@dataclass(frozen=True, slots=True)
class _Leaves:
    """Reads each leaf by what it names: a field of the record, or a path.

    Without the fields, what does not begin with a variable may name one. `checked` looks at the
    operands of paths, too.
    """

    variables: tuple[str, ...]
    fields: FieldSpecs | None
    now: datetime
    checked: bool = False

    def read(self, raw: grammar.RawLeaf, path: str) -> grammar.Filter[_Leaf]:
        name, first = raw["field"], _first_name(raw["field"])
        if first not in self.variables:
            if self.fields is None:
                return _UNKNOWN
            if first not in self.fields or name in self.fields:
                return FieldLeaves(self.fields, self.now).read(raw, path)
        leaf = read_path_leaf(raw, path)
        if self.checked:
            check_path_operand(raw, path)
        return leaf


_UNKNOWN: grammar.AllOf[_Leaf] = grammar.AllOf(())
"""Stands for the leaf of a field whose database is not at hand."""


def _first_name(name: object) -> str | None:
    """The first name of a path; None for what is no path."""
    try:
        return compile_path(name).split()[0] if isinstance(name, str) else None
    except BindingError:
        return None


def passes(
    predicate: object, variables: tuple[str, ...], payload: Mapping[str, Any], context: Asked
) -> bool:
    """True when a payload satisfies a filter; without one everything does.

    Raises BindingError for every error of the evaluation, an exceeded budget included.
    """
    if predicate is None:
        return True
    values = {name: payload if name == "trigger" else payload.get(name) for name in variables}
    if not isinstance(predicate, str):
        return _tree_passes(predicate, _Leaves(variables, context.fields, context.now), values)
    program, reads = _program(predicate, variables)
    result = program.run(reads.take(values))
    if not isinstance(result, bool):
        raise BindingError("The filter must return true or false.")
    return result


def failed_part(
    predicate: object, variables: tuple[str, ...], payload: Mapping[str, Any], context: Asked
) -> JsonObject:
    """The term of a filter that a payload does not satisfy, as `failed_term`."""
    parts: JsonObject = {
        name: payload if name == "trigger" else payload.get(name) for name in variables
    }
    return failed_term(
        predicate,
        lambda part: passes(part, variables, payload, context),
        {**_values_of(parts["record"]), **parts},
    )


def _values_of(record: Mapping[str, Any]) -> JsonObject:
    return {key: value for part in _VALUES for key, value in record[part].items()}


def _tree_passes(given: object, leaves: _Leaves, known: Mapping[str, Any]) -> bool:
    values = _values_of(known["record"])
    variables = {**values, **known}

    def passes_leaf(leaf: object) -> bool:
        if isinstance(leaf, PathLeaf):
            return leaf.holds(variables, leaves.now)
        assert isinstance(leaf, Leaf), "a leaf names a field or a path"
        stored = values.get(leaf.field.key)
        if not has_form(leaf.field, stored):
            raise BindingError("A value of the record is not of its field's kind.")
        return leaf_holds(leaf, stored)

    try:
        tree = grammar.read_tree(given, leaves.read)
    except grammar.FilterError as error:
        raise BindingError(str(error)) from None
    return holds(tree, passes_leaf)


@lru_cache(maxsize=1_024)
def _program(text: str, variables: tuple[str, ...]) -> tuple[Program, Reads]:
    return Program(_ENVIRONMENTS[variables], text), Reads(text, variables)


Holds = Callable[[object], bool]
"""Says of a filter, or of a part of one, whether it holds. May raise BindingError."""

MAX_TEXT = 500
"""Characters of a term or a value that are kept."""
_MAX_VALUES = 8
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def failed_term(predicate: object, holds: Holds, variables: Mapping[str, Any]) -> JsonObject:
    """`{term, value}` of a filter that does not hold of the variables.

    The value of a single condition is the one it was compared with; of others, the values by the
    names that they read.
    """
    term = _failed(predicate, holds)
    return {"term": cut(term), "value": _value(term, variables)}


def cut(value: object) -> object:
    """A JSON value that is shortened to a text when it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _failed(part: object, holds: Holds) -> object:
    if isinstance(part, str):
        return next((one for one in conjuncts(part) if not _holds(one, holds)), part)
    if isinstance(part, dict) and isinstance(part.get("and"), list):
        first = next((one for one in part["and"] if not _holds(one, holds)), None)
        return part if first is None else _failed(first, holds)
    if isinstance(part, dict) and isinstance(part.get("or"), list) and len(part["or"]) == 1:
        return _failed(part["or"][0], holds)
    return part


def _holds(part: object, holds: Holds) -> bool:
    try:
        return holds(part)
    except BindingError:
        return False


def conjuncts(text: str) -> list[str]:
    """The parts of an expression that must all be true; one part when it has no outermost `&&`."""
    depth, cuts, marks = 0, [0], list(tokens(text))
    for place, token in enumerate(marks):
        if token.kind != "mark":
            continue
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        follows = place + 1 < len(marks) and marks[place + 1].start == token.start + 1
        doubled = follows and marks[place + 1].text == token.text
        if depth == 0 and (token.text == "?" or (token.text == "|" and doubled)):
            return [text]
        if depth == 0 and token.text == "&" and doubled:
            cuts.append(token.start)
    ends = [*cuts[1:], len(text)]
    parts = [
        text[start:end].removeprefix("&&").strip() for start, end in zip(cuts, ends, strict=True)
    ]
    return [part for part in parts if part] or [text]


def _value(term: object, variables: Mapping[str, Any]) -> object:
    if isinstance(term, dict) and "field" in term:
        return cut(_at(str(term["field"]), variables))
    if isinstance(term, str):
        read = sorted(
            {
                (name, *path)
                for name in free_names(term) & variables.keys()
                for path in paths(term, name)
            }
        )
        places = [".".join(path) for path in read]
    else:
        places = list(dict.fromkeys(_fields(term)))
    return {place: cut(_at(place, variables)) for place in places[:_MAX_VALUES]}


def _fields(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if "field" in part:
            yield str(part["field"])
        for inner in part.values():
            yield from _fields(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _fields(inner)


def _at(place: str, variables: Mapping[str, Any]) -> object:
    """The value at a place; of one whose name says that it is a secret, only that it is there."""
    try:
        value = variables[place] if place in variables else compile_path(place).get(dict(variables))
    except BindingError:
        return None
    named = without_named_secrets({place: value})
    return named[place] if isinstance(named, dict) else named
