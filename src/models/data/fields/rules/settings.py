"""Settings of each field kind, read and checked, with the aggregates they may name. Pure.

A key that a kind does not know is refused: it would have no effect, and most are typing errors.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic import ValidationError as PydanticError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from models.core.base import EXAMPLE_ID, JsonObject, Label, example
from models.core.filters.grammar import ValueForm
from models.core.problems import an, known_keys, nearest_known, sentence
from models.core.values import InvalidValueError, check_storable
from models.data.fields.rules.fields import NUMERIC_KINDS, FieldKind
from models.data.fields.rules.values import MAX_FILES, ResultKind
from runtime.errors import Detail
from runtime.ids import parse_id


class Aggregate(StrEnum):
    COUNT = "count"
    COUNT_EMPTY = "count_empty"
    COUNT_FILLED = "count_filled"
    COUNT_UNIQUE = "count_unique"
    PERCENT_EMPTY = "percent_empty"
    PERCENT_FILLED = "percent_filled"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    RANGE = "range"
    STDDEV = "stddev"
    EARLIEST = "earliest"
    LATEST = "latest"
    CHECKED = "checked"
    UNCHECKED = "unchecked"


OF_ANYTHING = frozenset(
    {
        Aggregate.COUNT,
        Aggregate.COUNT_EMPTY,
        Aggregate.COUNT_FILLED,
        Aggregate.COUNT_UNIQUE,
        Aggregate.PERCENT_EMPTY,
        Aggregate.PERCENT_FILLED,
    }
)
_OF_NUMBERS = frozenset(
    {
        Aggregate.SUM,
        Aggregate.AVG,
        Aggregate.MEDIAN,
        Aggregate.RANGE,
        Aggregate.STDDEV,
    }
)
_OF_TIMES = frozenset({Aggregate.EARLIEST, Aggregate.LATEST})
_OF_CHECKBOXES = frozenset({Aggregate.CHECKED, Aggregate.UNCHECKED})

_SCALARS = {
    ValueForm.NUMBER: ResultKind.NUMBER,
    ValueForm.TEXT: ResultKind.TEXT,
    ValueForm.TIME: ResultKind.TEXT,
    ValueForm.DAY: ResultKind.DATE,
    ValueForm.MOMENT: ResultKind.DATETIME,
}
"""Forms with an order of their own; the smallest and the largest value have the same form."""


def aggregate_result(aggregate: Aggregate, form: ValueForm) -> ResultKind | None:
    """The kind of an aggregate over values of this form; None when it does not take them."""
    if aggregate in OF_ANYTHING:
        return ResultKind.NUMBER
    if aggregate in _OF_NUMBERS:
        return ResultKind.NUMBER if form is ValueForm.NUMBER else None
    if aggregate in _OF_CHECKBOXES:
        return ResultKind.NUMBER if form is ValueForm.BOOLEAN else None
    if aggregate in _OF_TIMES and form not in {ValueForm.DAY, ValueForm.MOMENT}:
        return None
    return _SCALARS.get(form)


def usable_aggregates(form: ValueForm) -> list[Aggregate]:
    """The aggregates that values of this form take."""
    return [aggregate for aggregate in Aggregate if aggregate_result(aggregate, form)]


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


class PlainSettings(BaseModel):
    """A kind without settings of its own."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    spelled_out: ClassVar[bool] = False
    """Stored with every default spelled out, because the platform itself reads them."""


class NumberSettings(PlainSettings):
    """The display of a number, and the bounds of its values; `currencyCode` is an ISO 4217 code."""

    model_config = example({"precision": 2, "min": 0, "format": "grouped", "currencyCode": "EUR"})

    precision: Annotated[int, Field(ge=0, le=10)] | None = None
    min: float | None = None
    max: float | None = None
    format: Literal["plain", "grouped"] | None = None
    currency_code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    unit: Annotated[str, Field(max_length=20)] | None = None


class OptionSettings(PlainSettings):
    """With `allowCreate`, writing an unknown value creates an option."""

    model_config = example({"allowCreate": True})

    allow_create: bool = False


class StatusGroups(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    todo: list[str] = []
    in_progress: list[str] = []
    done: list[str] = []


class StatusSettings(OptionSettings):
    """Options in three groups, by their keys."""

    model_config = example(
        {"groups": {"todo": ["open"], "in_progress": ["doing"], "done": ["done", "dropped"]}}
    )

    groups: StatusGroups | None = None


class DateSettings(PlainSettings):
    """The display of a date; days begin in `timezone`, by default UTC."""

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


class FileSettings(PlainSettings):
    """The most files a record may hold here. A value is a list of file ids."""

    model_config = example({"maxFiles": 5})

    max_files: Annotated[int, Field(ge=1, le=MAX_FILES)] | None = None


class RelationSettings(PlainSettings):
    """The related database, and how many records a value may have.

    The other database gets the inverse field, named `inverseLabel`; a `symmetric` relation into its
    own database is its own inverse. With `onDelete` `restrict`, a record that others link to cannot
    be deleted.
    """

    model_config = example({"databaseId": EXAMPLE_ID, "inverseLabel": "Orders"})

    spelled_out = True

    database_id: IdText
    cardinality: Literal["one", "many"] = "many"
    symmetric: bool = False
    on_delete: Literal["unlink", "restrict"] = "unlink"
    inverse_label: Label | None = None
    inverse_field_id: IdText | None = None
    """Given by the platform, as `result_kind` of a rollup is; what was read may be sent back."""


class LookupSettings(PlainSettings):
    """The values of a field of the related records, as a list."""

    model_config = example({"relationFieldKey": "orders", "targetFieldKey": "status"})

    relation_field_key: FieldKey
    target_field_key: FieldKey


class RollupSettings(LookupSettings):
    """An aggregate of a field of the related records."""

    model_config = example(
        {"relationFieldKey": "orders", "targetFieldKey": "price", "aggregate": "sum"}
    )

    aggregate: Annotated[Aggregate, Field(strict=False)]
    result_kind: Annotated[ResultKind, Field(strict=False)] | None = None


class FormulaSettings(PlainSettings):
    """A CEL expression over `record`, whose keys are the field keys; numbers are doubles."""

    model_config = example({"expression": "record.price * 2", "resultKind": "number"})

    expression: Annotated[str, Field(min_length=1, max_length=MAX_EXPRESSION)]
    result_kind: Annotated[ResultKind, Field(strict=False)] | None = None


class ButtonBinding(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["literal", "field", "record", "user", "expression"]
    value: Any


class ButtonSettings(PlainSettings):
    """The action that a button runs, and its input.

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

    spelled_out = True

    action_id: IdText
    bindings: Annotated[dict[str, ButtonBinding], Field(max_length=100)] = {}
    label: Label | None = None
    style: Annotated[str, Field(max_length=50)] | None = None
    confirm: bool | Annotated[str, Field(max_length=500)] = False


class TimerSettings(PlainSettings):
    """The settings of time tracking on a record."""

    model_config = example({"roundToMinutes": 15})

    spelled_out = True

    allow_manual: bool = True
    round_to_minutes: Annotated[int, Field(ge=1, le=1_440)] | None = None


_SHAPES: dict[FieldKind, type[PlainSettings]] = {
    **dict.fromkeys(NUMERIC_KINDS, NumberSettings),
    FieldKind.SELECT: OptionSettings,
    FieldKind.MULTI_SELECT: OptionSettings,
    FieldKind.STATUS: StatusSettings,
    FieldKind.DATE: DateSettings,
    FieldKind.DATETIME: DateSettings,
    FieldKind.FILE: FileSettings,
    FieldKind.RELATION: RelationSettings,
    FieldKind.ROLLUP: RollupSettings,
    FieldKind.LOOKUP: LookupSettings,
    FieldKind.FORMULA: FormulaSettings,
    FieldKind.BUTTON: ButtonSettings,
    FieldKind.TIMER: TimerSettings,
}


def settings_model(kind: FieldKind) -> type[PlainSettings]:
    """The model that checks the settings of a kind."""
    return _SHAPES.get(kind, PlainSettings)


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
    """Check the settings of a field; each problem is reported at its place below `path`."""
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
        return f"is required: the keys of {an(kind)} field are {', '.join(keys)}"
    if len(problem["loc"]) == 1 and key in BESIDE_SETTINGS:
        return f"is not a setting: set `{key}` beside the `settings` of the field"
    if not keys:
        return f"is not a known key of {an(kind)} field"
    return f"is not a known key of {an(kind)} field; {nearest_known(key, keys)}"


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
                problems.append(Detail(f"{path}.{name}.{place}", "is already in another group"))
            grouped_keys.add(key)
    return problems
