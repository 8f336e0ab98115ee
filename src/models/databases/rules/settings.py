"""The settings each field kind understands (decisions C5).

Settings are a free-form object (C1): what a kind understands is checked, what it does not know is
kept for the clients that do.
"""

from functools import cache
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic import ValidationError as PydanticError
from pydantic.alias_generators import to_camel

from models.databases.rules.kinds import DATE_KINDS, NUMERIC_KINDS, OPTION_KINDS, FieldKind
from runtime.errors import Detail


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def zone(name: str) -> ZoneInfo:
    """The IANA time zone of that name; `ValueError` when there is none."""
    if name not in _zone_names():
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return ZoneInfo(name)


class _Settings(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="allow", strict=True, allow_inf_nan=False
    )


class _NumberSettings(_Settings):
    precision: Annotated[int, Field(ge=0, le=10)] | None = None
    min: float | None = None
    max: float | None = None
    format: Literal["plain", "grouped"] | None = None
    currency_code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    unit: Annotated[str, Field(max_length=20)] | None = None


class _OptionSettings(_Settings):
    allow_create: bool = False


class _StatusGroups(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    todo: list[str] = []
    in_progress: list[str] = []
    done: list[str] = []


class _StatusSettings(_OptionSettings):
    groups: _StatusGroups | None = None


class _DateSettings(_Settings):
    include_time: bool | None = None
    timezone: str | None = None
    display_format: Annotated[str, Field(max_length=50)] | None = None

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        if name is not None:
            zone(name)
        return name


def _shape_of(kind: FieldKind) -> type[_Settings]:
    if kind in NUMERIC_KINDS:
        return _NumberSettings
    if kind is FieldKind.STATUS:
        return _StatusSettings
    if kind in OPTION_KINDS:
        return _OptionSettings
    return _DateSettings if kind in DATE_KINDS else _Settings


def settings_problems(
    kind: FieldKind, settings: dict[str, Any], option_keys: set[str], path: str
) -> list[Detail]:
    """Everything wrong with a field's settings, each at its place below `path`."""
    try:
        read = _shape_of(kind).model_validate(settings)
    except PydanticError as error:
        return [
            Detail(".".join([path, *map(str, problem["loc"])]), _message(problem["msg"]))
            for problem in error.errors(include_url=False, include_input=False)
        ]
    if isinstance(read, _NumberSettings):
        return _range_problems(read, path)
    if isinstance(read, _StatusSettings) and read.groups is not None:
        return _group_problems(read.groups, option_keys, f"{path}.groups")
    return []


def _message(text: str) -> str:
    return text.removeprefix("Value error, ")


def _range_problems(read: _NumberSettings, path: str) -> list[Detail]:
    if read.min is not None and read.max is not None and read.min > read.max:
        return [Detail(f"{path}.min", "is greater than max")]
    return []


def _group_problems(groups: _StatusGroups, option_keys: set[str], path: str) -> list[Detail]:
    problems: list[Detail] = []
    seen: set[str] = set()
    for name in ("todo", "in_progress", "done"):
        for place, key in enumerate(getattr(groups, name)):
            if key not in option_keys:
                problems.append(Detail(f"{path}.{name}.{place}", "is not the key of an option"))
            elif key in seen:
                problems.append(Detail(f"{path}.{name}.{place}", "is in another group already"))
            seen.add(key)
    return problems
