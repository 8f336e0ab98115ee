"""The settings each field kind understands (decisions C5).

A key that a kind does not know is refused: nobody would read it, and most are typing errors.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic import ValidationError as PydanticError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from models.core.base import EXAMPLE_ID, JsonObject, Label, example
from models.core.values import InvalidValueError, check_storable
from models.data.databases.rules.aggregates import Aggregate
from models.data.databases.rules.kinds import NUMERIC_KINDS, FieldKind
from models.data.databases.rules.registry import ResultKind
from models.data.databases.rules.values import MAX_FILES
from runtime.errors import Detail
from runtime.ids import parse_id

MAX_SETTINGS_DEPTH = 16
MAX_EXPRESSION = 4_000
"""Characters of a formula; the same as of every other expression."""


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def zone(name: str) -> ZoneInfo:
    """The IANA time zone of that name; `ValueError` when there is none."""
    if name not in _zone_names():
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return ZoneInfo(name)


def _canonical(text: str) -> str:
    parsed = parse_id(text)
    if parsed is None:
        raise ValueError("must be an id")
    return str(parsed)


IdText = Annotated[str, AfterValidator(_canonical)]
FieldKey = Annotated[str, Field(min_length=1, max_length=63)]


class _Settings(BaseModel):
    """A kind without settings of its own."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, allow_inf_nan=False
    )

    whole: ClassVar[bool] = False
    """Stored with every default spelled out, because the platform itself reads them."""


class _NumberSettings(_Settings):
    """How a number is shown, and the bounds of its values; `currencyCode` is that of ISO 4217."""

    model_config = example({"precision": 2, "min": 0, "format": "grouped", "currencyCode": "EUR"})

    precision: Annotated[int, Field(ge=0, le=10)] | None = None
    min: float | None = None
    max: float | None = None
    format: Literal["plain", "grouped"] | None = None
    currency_code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    unit: Annotated[str, Field(max_length=20)] | None = None


class _OptionSettings(_Settings):
    """With `allowCreate`, writing a value that is no option yet makes one."""

    model_config = example({"allowCreate": True})

    allow_create: bool = False


class _StatusGroups(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    todo: list[str] = []
    in_progress: list[str] = []
    done: list[str] = []


class _StatusSettings(_OptionSettings):
    """Options in three groups, by their keys."""

    model_config = example(
        {"groups": {"todo": ["open"], "in_progress": ["doing"], "done": ["done", "dropped"]}}
    )

    groups: _StatusGroups | None = None


class _DateSettings(_Settings):
    """How a date is shown; days begin in `timezone`, by default UTC."""

    model_config = example({"includeTime": True, "timezone": "Europe/Berlin"})

    include_time: bool | None = None
    timezone: str | None = None
    display_format: Annotated[str, Field(max_length=50)] | None = None

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        if name is not None:
            zone(name)
        return name


class _FileSettings(_Settings):
    """How many files a record may hold here. A value is a list of file ids."""

    model_config = example({"maxFiles": 5})

    max_files: Annotated[int, Field(ge=1, le=MAX_FILES)] | None = None


class _RelationSettings(_Settings):
    """Which database the records are of, and how many there may be.

    The other database gets a field that shows the relation from its side, named `inverseLabel`; a
    `symmetric` relation into its own database is its own inverse. With `onDelete` `restrict`, a
    record that others point at cannot be deleted.
    """

    model_config = example({"databaseId": EXAMPLE_ID, "inverseLabel": "Orders"})

    whole = True

    database_id: IdText
    cardinality: Literal["one", "many"] = "many"
    symmetric: bool = False
    on_delete: Literal["unlink", "restrict"] = "unlink"
    inverse_label: Label | None = None
    inverse_field_id: IdText | None = None
    """Given by the platform, as `result_kind` of a rollup is; what was read may be sent back."""


class _LookupSettings(_Settings):
    """The values of a field of the related records, as a list."""

    model_config = example({"relationFieldKey": "orders", "targetFieldKey": "status"})

    relation_field_key: FieldKey
    target_field_key: FieldKey


class _RollupSettings(_LookupSettings):
    """One figure over a field of the related records."""

    model_config = example(
        {"relationFieldKey": "orders", "targetFieldKey": "price", "aggregate": "sum"}
    )

    aggregate: Annotated[Aggregate, Field(strict=False)]
    result_kind: Annotated[ResultKind, Field(strict=False)] | None = None


class _FormulaSettings(_Settings):
    """A CEL expression over `record`, whose keys are those of the fields; numbers are doubles."""

    model_config = example({"expression": "record.price * 2", "resultKind": "number"})

    expression: Annotated[str, Field(min_length=1, max_length=MAX_EXPRESSION)]
    result_kind: Annotated[ResultKind, Field(strict=False)] | None = None


class _Binding(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["literal", "field", "record", "user", "expression"]
    value: Any


class _ButtonSettings(_Settings):
    """The action a button runs, and what it is given.

    `bindings` is a map from input name to `{type, value}`: a `literal`, the value of a `field` by
    its key, `id`, `title` or `databaseId` of the `record`, the `user` who presses, or an
    `expression`. The action reads them as `trigger.<input name>`.
    """

    model_config = example(
        {
            "actionId": EXAMPLE_ID,
            "bindings": {"email": {"type": "field", "value": "email"}},
            "label": "Send",
            "confirm": "Send the mail now?",
        }
    )

    whole = True

    action_id: IdText
    bindings: Annotated[dict[str, _Binding], Field(max_length=100)] = {}
    label: Label | None = None
    style: Annotated[str, Field(max_length=50)] | None = None
    confirm: bool | Annotated[str, Field(max_length=500)] = False


class _TimerSettings(_Settings):
    """How time is kept on a record."""

    model_config = example({"roundToMinutes": 15})

    whole = True

    allow_manual: bool = True
    round_to_minutes: Annotated[int, Field(ge=1, le=1_440)] | None = None


_SHAPES: dict[FieldKind, type[_Settings]] = {
    **dict.fromkeys(NUMERIC_KINDS, _NumberSettings),
    FieldKind.SELECT: _OptionSettings,
    FieldKind.MULTI_SELECT: _OptionSettings,
    FieldKind.STATUS: _StatusSettings,
    FieldKind.DATE: _DateSettings,
    FieldKind.DATETIME: _DateSettings,
    FieldKind.FILE: _FileSettings,
    FieldKind.RELATION: _RelationSettings,
    FieldKind.ROLLUP: _RollupSettings,
    FieldKind.LOOKUP: _LookupSettings,
    FieldKind.FORMULA: _FormulaSettings,
    FieldKind.BUTTON: _ButtonSettings,
    FieldKind.TIMER: _TimerSettings,
}


def settings_model(kind: FieldKind) -> type[_Settings]:
    """What checks the settings of a kind."""
    return _SHAPES.get(kind, _Settings)


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
    if isinstance(read, _NumberSettings):
        problems = _range_problems(read, path)
    if isinstance(read, _StatusSettings) and read.groups is not None:
        problems = _group_problems(read.groups, option_keys, f"{path}.groups")
    stored = {**settings, **_spelled_out(read)} if read.whole else settings
    return ReadSettings(stored, problems)


def _spelled_out(read: _Settings) -> JsonObject:
    """The settings the kind knows in their canonical form, with defaults."""
    declared = read.model_dump(mode="json", by_alias=True, include=set(type(read).model_fields))
    return {name: value for name, value in declared.items() if value is not None}


def _message(kind: FieldKind, problem: ErrorDetails) -> str:
    if problem["type"] != "extra_forbidden":
        return problem["msg"].removeprefix("Value error, ")
    known = [to_camel(name) for name in _SHAPES.get(kind, _Settings).model_fields]
    if len(problem["loc"]) > 1 or not known:
        return f"is not a known key of a {kind} field"
    return f"is not a known key of a {kind} field, which knows {', '.join(known)}"


def _range_problems(read: _NumberSettings, path: str) -> list[Detail]:
    if read.min is not None and read.max is not None and read.min > read.max:
        return [Detail(f"{path}.min", "is greater than max")]
    return []


def _group_problems(groups: _StatusGroups, option_keys: Collection[str], path: str) -> list[Detail]:
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
