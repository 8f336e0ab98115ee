"""Reading the settings of a field (decisions C5).

A key that a kind does not know is refused: nobody would read it, and most are typing errors.
"""

from collections.abc import Collection
from dataclasses import dataclass

from pydantic import ValidationError as PydanticError
from pydantic_core import ErrorDetails

from models.core.base import JsonObject
from models.core.nearest import known
from models.core.problems import an, known_keys, sentence
from models.core.values import InvalidValueError, check_storable
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.settings_shapes import (
    NumberSettings,
    PlainSettings,
    StatusGroups,
    StatusSettings,
    settings_model,
)
from runtime.errors import Detail

MAX_SETTINGS_DEPTH = 16
BESIDE_SETTINGS = frozenset({"label", "key", "required", "defaultValue", "options"})
"""Keys of a field itself, which are often looked for among its settings."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings as they are stored, and every problem found."""

    settings: JsonObject
    problems: list[Detail]


def read_settings(
    kind: FieldKind, settings: JsonObject, option_keys: Collection[str], path: str
) -> ReadSettings:
    """Check the settings of a field; each problem is told at its place below `path`."""
    try:
        check_storable(settings, MAX_SETTINGS_DEPTH)
        read = settings_model(kind).model_validate(settings)
    except InvalidValueError as problem:
        return ReadSettings({}, [Detail(path, str(problem))])
    except PydanticError as error:
        problems = [
            Detail(".".join([path, *map(str, problem["loc"])]), _message(kind, problem))
            for problem in error.errors(include_url=False, include_input=False)
        ]
        return ReadSettings({}, problems)
    problems = []
    if isinstance(read, NumberSettings):
        problems = _range_problems(read, path)
    if isinstance(read, StatusSettings) and read.groups is not None:
        problems = _group_problems(read.groups, option_keys, f"{path}.groups")
    stored = {**settings, **_spelled_out(read)} if read.spelled_out else settings
    return ReadSettings(stored, problems)


def _spelled_out(read: PlainSettings) -> JsonObject:
    """The settings the kind knows in their canonical form, with defaults."""
    declared = read.model_dump(mode="json", by_alias=True, include=set(type(read).model_fields))
    return {name: value for name, value in declared.items() if value is not None}


def _message(kind: FieldKind, problem: ErrorDetails) -> str:
    if problem["type"] not in ("extra_forbidden", "missing"):
        return sentence(problem)
    key, keys = problem["loc"][-1], known_keys(settings_model(kind), problem["loc"])
    if problem["type"] == "missing":
        return f"is required: {an(kind)} field knows {', '.join(keys)}"
    if len(problem["loc"]) == 1 and key in BESIDE_SETTINGS:
        return f"is no setting: `{key}` of a field stands beside its `settings`"
    if not keys:
        return f"is not a known key of {an(kind)} field"
    return f"is not a known key of {an(kind)} field; {known(key, keys)}"


def _range_problems(read: NumberSettings, path: str) -> list[Detail]:
    if read.min is not None and read.max is not None and read.min > read.max:
        return [Detail(f"{path}.min", "is greater than max")]
    return []


def _group_problems(groups: StatusGroups, option_keys: Collection[str], path: str) -> list[Detail]:
    problems: list[Detail] = []
    grouped_keys: set[str] = set()
    for name in ("todo", "in_progress", "done"):
        for place, key in enumerate(getattr(groups, name)):
            if key not in option_keys:
                problems.append(Detail(f"{path}.{name}.{place}", "is not the key of an option"))
            elif key in grouped_keys:
                problems.append(Detail(f"{path}.{name}.{place}", "is in another group already"))
            grouped_keys.add(key)
    return problems
