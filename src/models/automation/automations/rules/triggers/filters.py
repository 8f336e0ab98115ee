"""Filters of triggers: CEL text or a filter tree over what a trigger is told (decisions C7, C11).

Both speak of the parts of the payload by their names: `record`, `before`, `changedKeys`, `actor`,
or of all of it as `trigger`. A filter tree may also name a field of the record by its key alone;
one that names nothing else is a filter of queries, and means what it means there.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.language.filters import (
    filter_names,
    filter_problems,
    matches,
)
from models.automation.automations.rules.language.record_paths import never_there
from models.core.expressions.rules.cel_text import names
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.json_values import readable
from models.core.expressions.rules.programs import Program, Type, environment
from models.data.databases.rules.fields import FieldSpecs
from models.data.records.rules.query.filters import read_filter
from models.data.records.rules.query.memory import holds
from runtime.errors import ValidationError

CHANGE = ("record", "before", "changedKeys", "actor", "trigger")
"""What the filter of a change may speak of."""
STATE = ("record",)
"""What the filter of a state may speak of, for it is asked before and after a change."""

_VALUES = ("system", "computed", "relations", "data")
"""Where a record holds the values of its fields."""

_ENVIRONMENTS: dict[tuple[str, ...], Any] = {
    given: environment(dict.fromkeys(given, Type.ANY)) for given in (CHANGE, STATE)
}

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a filter is asked with: the fields of the database, and the time."""

    fields: FieldSpecs
    now: datetime


def filter_is_wrong(given: Any, variables: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What keeps a filter from being evaluated, as far as it tells without data: path, sentence."""
    if isinstance(given, str):
        try:
            if _program(given, variables).type not in {"BOOL", "DYN"}:
                yield "filter", "The expression must give true or false."
        except BindingError as error:
            yield "filter", error.message
    elif given is not None and not _is_query(given, variables):
        yield from filter_problems(given, variables=None)


def field_problems(
    given: Any, variables: tuple[str, ...], fields: FieldSpecs
) -> Iterator[tuple[str, str]]:
    """What is wrong with the fields a filter names, given those there are: path, sentence."""
    if isinstance(given, str):
        yield from (("filter", message) for message in never_there(given, variables, fields))
    elif _is_query(given, variables):
        try:
            read_filter(given, fields, _ANY_TIME)
        except ValidationError as error:
            yield from ((detail.path, detail.message) for detail in error.details)
    elif isinstance(given, dict) and not any(filter_problems(given, variables=None)):
        for key in sorted(set(filter_names(given)) - {*variables, *fields}):
            yield "filter", f'The database has no field "{shorten(key)}".'


def _is_query(given: Any, variables: tuple[str, ...]) -> bool:
    return isinstance(given, dict) and not any(
        re.split(r"[.\[]", name.removeprefix("$."))[0] in variables for name in _leaf_names(given)
    )


def _leaf_names(tree: Any) -> Iterator[str]:
    """What the leaves of a tree name, also of one that is wrong."""
    if isinstance(tree, dict) and "field" in tree:
        yield str(tree["field"])
    elif isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaf_names(part)


def passes(
    given: Any, variables: tuple[str, ...], payload: Mapping[str, Any], asked: Asked
) -> bool:
    """Whether a payload satisfies a filter; without one everything does.

    Raises BindingError for every error of the evaluation, an exceeded budget included.
    """
    if given is None:
        return True
    known = {name: payload if name == "trigger" else payload.get(name) for name in variables}
    if not isinstance(given, str):
        record = payload["record"]
        fields = {key: value for part in _VALUES for key, value in record[part].items()}
        if _is_query(given, variables):
            return _holds(given, fields, asked)
        return matches(given, {**fields, **known}, asked.now)
    result = _program(given, variables).run(_read(given, known))
    if not isinstance(result, bool):
        raise BindingError("The filter must give true or false.")
    return result


def _holds(given: Mapping[str, Any], values: Mapping[str, Any], asked: Asked) -> bool:
    try:
        return holds(read_filter(given, asked.fields, asked.now), values)
    except ValidationError as error:
        raise BindingError(str(error)) from None
    except (ArithmeticError, TypeError, ValueError):
        raise BindingError("A value of the record is not of its field's kind.") from None


@lru_cache(maxsize=1_024)
def _program(text: str, variables: tuple[str, ...]) -> Program:
    return Program(_ENVIRONMENTS[variables], text)


def _read(text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    used: Collection[str] = names(text)
    # CEL copies a variable whole when it is read, so the others are not even looked at.
    return {name: readable(value) for name, value in known.items() if name in used}
