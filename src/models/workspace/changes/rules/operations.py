"""Reading the operations of a change set, and everything that is wrong with them. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from models.core.base import JsonObject
from models.core.inputs import read_part
from models.core.problems import MAX_PROBLEMS, refuse
from models.core.values import InvalidValueError, check_storable
from models.workspace.changes.rules.kinds import RULES, OperationKind, keys_of
from models.workspace.changes.rules.references import refs_in, with_placeholders
from models.workspace.changes.shapes import Operation
from runtime.errors import Detail, ValidationError

MAX_DEPTH = 24


def check_operations(operations: Sequence[Operation], path: str = "operations") -> None:
    """Raise `ValidationError` with every problem.

    An operation refers only to those before it, so there are no cycles.
    """
    problems: list[Detail] = []
    names: set[str] = set()
    for place, operation in enumerate(operations):
        at = f"{path}.{place}"
        problems += _problems(operation, at, names)
        made = [] if operation.ref is None else [operation.ref]
        for name in [*made, *record_refs(operation)]:
            if name in names:
                problems.append(Detail(f"{at}.ref", f"The name {name} is used twice."))
            names.add(name)
    refuse(problems[:MAX_PROBLEMS])


def record_refs(operation: Operation) -> list[str]:
    """The names of the records of a `create_records`."""
    if operation.kind is not OperationKind.CREATE_RECORDS:
        return []
    records = operation.input.get("records")
    found = [one.get("ref") for one in records or [] if isinstance(one, dict)]
    return [name for name in found if isinstance(name, str)]


def _problems(operation: Operation, at: str, known: set[str]) -> Iterator[Detail]:
    try:
        check_storable(operation.input, MAX_DEPTH)
    except InvalidValueError as problem:
        yield Detail(f"{at}.input", str(problem))
        return
    for name in sorted(refs_in(operation.input) - known):
        yield Detail(f"{at}.input", f"No operation before this one makes {name}.")
    try:
        read_input(operation.kind, with_placeholders(operation.input), f"{at}.input")
    except ValidationError as error:
        yield from error.details


def read_input(kind: OperationKind, values: JsonObject, path: str) -> tuple[Any, Any]:
    """The subject of the operation, and its body. Raises `ValidationError` below `path`."""
    rule = RULES[kind]
    names = keys_of(rule.about)
    about = {key: value for key, value in values.items() if key in names}
    rest = {key: value for key, value in values.items() if key not in names}
    return read_part(rule.about, about, path), read_part(rule.body, rest, path)
