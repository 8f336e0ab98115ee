"""Filters of triggers: CEL text or a filter tree over what a trigger is told (decisions C7, C11).

Both speak of the parts of the payload by their names: `record`, `before`, `changedKeys`, `actor`,
or of all of it as `trigger`. A leaf of a filter tree names a field of the record by its key, and
then means what it means in a query; or it is a path into the parts of the payload, or into the
value of a field, and is judged by the JSON value it finds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from models.automation.automations.rules.language.filters import (
    PathLeaf,
    check_path_operand,
    read_path_leaf,
)
from models.automation.automations.rules.language.paths import compile_path
from models.automation.automations.rules.language.record_paths import never_there
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.programs import Program, Type, environment
from models.core.expressions.rules.reads import Reads
from models.core.filters.grammar import AllOf, Filter, FilterError, RawLeaf, read_tree
from models.core.filters.memory import holds
from models.data.fields.rules.fields import FieldSpecs
from models.data.records.rules.query.filters import FieldLeaves, Leaf
from models.data.records.rules.query.memory import has_form, leaf_holds

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
                yield "filter", "The expression must give true or false."
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
        read_tree(given, leaves.read)
    except FilterError as error:
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

    def read(self, raw: RawLeaf, path: str) -> Filter[_Leaf]:
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


_UNKNOWN: AllOf[_Leaf] = AllOf(())
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
        raise BindingError("The filter must give true or false.")
    return result


def _tree_passes(given: object, leaves: _Leaves, known: Mapping[str, Any]) -> bool:
    record = known["record"]
    values = {key: value for part in _VALUES for key, value in record[part].items()}
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
        tree = read_tree(given, leaves.read)
    except FilterError as error:
        raise BindingError(str(error)) from None
    return holds(tree, passes_leaf)


@lru_cache(maxsize=1_024)
def _program(text: str, variables: tuple[str, ...]) -> tuple[Program, Reads]:
    return Program(_ENVIRONMENTS[variables], text), Reads(text, variables)
