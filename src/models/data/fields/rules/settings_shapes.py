"""The settings of each field kind (decisions C5)."""

from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from models.core.base import EXAMPLE_ID, Label, example
from models.data.fields.rules.aggregates import Aggregate
from models.data.fields.rules.kinds import NUMERIC_KINDS, FieldKind
from models.data.fields.rules.registry import ResultKind
from models.data.fields.rules.values import MAX_FILES
from runtime.ids import parse_id

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
    """With `allowCreate`, writing a value that is no option yet makes one."""

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
    """The database that the records are of, and the number there may be.

    The other database gets a field that shows the relation from its side, named `inverseLabel`; a
    `symmetric` relation into its own database is its own inverse. With `onDelete` `restrict`, a
    record that others point at cannot be deleted.
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
    """One figure over a field of the related records."""

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

    spelled_out = True

    action_id: IdText
    bindings: Annotated[dict[str, ButtonBinding], Field(max_length=100)] = {}
    label: Label | None = None
    style: Annotated[str, Field(max_length=50)] | None = None
    confirm: bool | Annotated[str, Field(max_length=500)] = False


class TimerSettings(PlainSettings):
    """The rules for keeping time on a record."""

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
