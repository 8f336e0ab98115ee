"""Trigger kinds and the config of each (decisions C7)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field, TypeAdapter

from models.automations.rules.configs import CelText, FieldKey, HeaderName, IsoMoment
from models.automations.rules.graph import Json, Reference
from models.automations.rules.payloads import schema_problem
from models.automations.rules.schedules import cron_problem
from models.automations.rules.timezones import is_timezone
from models.base import Input, JsonObject
from runtime.errors import Detail, ValidationError


class TriggerKind(StrEnum):
    MANUAL = "manual"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    RECORD_CREATED = "record_created"
    RECORD_UPDATED = "record_updated"
    RECORD_DELETED = "record_deleted"
    RECORD_MATCHES = "record_matches"
    RECORD_DATE_REACHED = "record_date_reached"
    FORM_SUBMITTED = "form_submitted"
    BUTTON_PRESSED = "button_pressed"
    DATA_SOURCE_FINISHED = "data_source_finished"
    AUTOMATION_FAILED = "automation_failed"
    AUTOMATION_CALLED = "automation_called"
    TIME_ENTRY_COMPLETED = "time_entry_completed"


FIRING: frozenset[TriggerKind] = frozenset({TriggerKind.MANUAL})
"""The kinds that start runs today; an automation with another cannot be published."""

Seconds = Annotated[int, Field(ge=0, le=31 * 86_400)]
Keys = Annotated[list[FieldKey], Field(max_length=500)]
Filter = Json | CelText


class Concurrency(Input):
    """How many runs of one automation, or of one key, go at a time."""

    limit: Annotated[int, Field(ge=1, le=1_000)]
    key_expression: CelText | None = None
    policy: Literal["queue", "skip", "cancel_oldest"] = "queue"


class _Trigger(Input):
    concurrency: Concurrency | None = None


class ManualTrigger(_Trigger):
    kind: Literal["manual"]
    input_schema: Json | None = None


class ScheduleTrigger(_Trigger):
    kind: Literal["schedule"]
    cron: Annotated[str, Field(max_length=256)] | None = None
    interval_seconds: Annotated[int, Field(ge=60, le=366 * 86_400)] | None = None
    timezone: Annotated[str, Field(max_length=64)] = "UTC"
    start_at: IsoMoment | None = None
    end_at: IsoMoment | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] = 0
    overlap: Literal["skip", "buffer_one", "allow_all", "cancel_other"] = "skip"
    catchup_window_seconds: Seconds = 600


class Signature(Input):
    scheme: Literal["standard_webhooks", "hmac_sha256"] = "standard_webhooks"
    header: HeaderName | None = None
    encoding: Literal["hex", "base64"] = "hex"
    tolerance_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300


class Deduplication(Input):
    source: Literal["header", "path", "body_hash"]
    name: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    window_seconds: Annotated[int, Field(ge=1, le=7 * 86_400)] = 86_400


class WebhookTrigger(_Trigger):
    kind: Literal["webhook"]
    methods: Annotated[
        list[Literal["GET", "POST", "PUT", "PATCH", "DELETE"]],
        Field(min_length=1, max_length=5, default_factory=lambda: ["POST"]),
    ]
    auth: Literal["signature", "basic", "header", "none"] = "signature"
    signature: Signature | None = None
    dedupe: Deduplication | None = None
    respond: Literal["immediate", "wait"] = "immediate"
    filter: Filter | None = None


class RecordTrigger(_Trigger):
    kind: Literal["record_created", "record_updated", "record_deleted"]
    database_id: Reference | None = None
    field_keys: Keys | None = None
    filter: Filter | None = None
    debounce_seconds: Seconds = 0
    include_system_changes: bool = False


class RecordMatchesTrigger(_Trigger):
    kind: Literal["record_matches"]
    database_id: Reference | None = None
    filter: Filter | None = None


class RecordDateReachedTrigger(_Trigger):
    kind: Literal["record_date_reached"]
    database_id: Reference | None = None
    field_key: FieldKey | None = None
    offset_minutes: Annotated[int, Field(ge=-527_040, le=527_040)] = 0
    timezone: Annotated[str, Field(max_length=64)] = "UTC"


class FormSubmittedTrigger(_Trigger):
    kind: Literal["form_submitted"]
    form_item_id: Reference | None = None
    view_id: Reference | None = None


class ButtonPressedTrigger(_Trigger):
    kind: Literal["button_pressed"]
    database_id: Reference | None = None
    field_key: FieldKey | None = None


class DataSourceFinishedTrigger(_Trigger):
    kind: Literal["data_source_finished"]
    data_source_id: Reference | None = None
    on: Literal["succeeded", "failed", "any"] = "any"


class AutomationFailedTrigger(_Trigger):
    kind: Literal["automation_failed"]
    automation_ids: Annotated[list[Reference], Field(max_length=100)] | Literal["any"] = "any"


class AutomationCalledTrigger(_Trigger):
    kind: Literal["automation_called"]
    input_schema: Json | None = None


class TimeEntryCompletedTrigger(_Trigger):
    kind: Literal["time_entry_completed"]
    target_kind: Literal["database_record", "item", "workspace"] | None = None
    database_id: Reference | None = None


TriggerConfig = Annotated[
    ManualTrigger
    | ScheduleTrigger
    | WebhookTrigger
    | RecordTrigger
    | RecordMatchesTrigger
    | RecordDateReachedTrigger
    | FormSubmittedTrigger
    | ButtonPressedTrigger
    | DataSourceFinishedTrigger
    | AutomationFailedTrigger
    | AutomationCalledTrigger
    | TimeEntryCompletedTrigger,
    Field(discriminator="kind"),
]

_ADAPTER: TypeAdapter[TriggerConfig] = TypeAdapter(TriggerConfig)


def parse_trigger_config(given: JsonObject) -> JsonObject:
    """A client's trigger config as it is stored: defaults filled in, absent keys left out.

    Raises ValidationError with a path below `triggerConfig` for everything of the wrong shape.
    """
    try:
        trigger = _ADAPTER.validate_python(given)
    except pydantic.ValidationError as error:
        details = [_detail(part) for part in error.errors(include_url=False)]
        raise ValidationError(f"{details[0].path}: {details[0].message}", details) from None
    dumped = trigger.model_dump(mode="json", by_alias=True)
    return {key: value for key, value in dumped.items() if value is not None}


def _detail(error: Any) -> Detail:
    # The first part of a place is the kind that chose the model; an error about it has none.
    place = [str(part) for part in error["loc"][1:]]
    return Detail(".".join(["triggerConfig", *place]), str(error["msg"]))


def read_trigger(stored: JsonObject) -> TriggerConfig:
    """What `parse_trigger_config` stored."""
    return _ADAPTER.validate_python(stored)


def trigger_problems(trigger: TriggerConfig) -> Iterator[str]:
    """Why an automation with this trigger cannot be published, as far as the config tells."""
    if trigger.kind not in FIRING:
        yield (
            f'The trigger "{trigger.kind}" cannot start runs yet. '
            f"Available triggers: {', '.join(sorted(FIRING))}."
        )
    if isinstance(trigger, ScheduleTrigger):
        yield from _schedule_problems(trigger)
    elif isinstance(trigger, RecordDateReachedTrigger):
        yield from _timezone_problem(trigger.timezone)
    elif isinstance(trigger, ManualTrigger | AutomationCalledTrigger):
        problem = schema_problem(trigger.input_schema or {})
        if problem is not None:
            yield problem
    yield from _missing_keys(trigger)


_NEEDED = {
    "record_created": ("database_id",),
    "record_updated": ("database_id",),
    "record_deleted": ("database_id",),
    "record_matches": ("database_id", "filter"),
    "record_date_reached": ("database_id", "field_key"),
    "button_pressed": ("database_id", "field_key"),
    "data_source_finished": ("data_source_id",),
}


def _missing_keys(trigger: TriggerConfig) -> Iterator[str]:
    for name in _NEEDED.get(trigger.kind, ()):
        if getattr(trigger, name) is None:
            alias = type(trigger).model_fields[name].alias
            yield f"The trigger config needs {alias}."
    if isinstance(trigger, FormSubmittedTrigger) and not (trigger.form_item_id or trigger.view_id):
        yield "The trigger config needs formItemId or viewId."


def _schedule_problems(trigger: ScheduleTrigger) -> Iterator[str]:
    if (trigger.cron is None) is (trigger.interval_seconds is None):
        yield "A schedule needs either cron or intervalSeconds."
    if trigger.cron is not None and (problem := cron_problem(trigger.cron)) is not None:
        yield problem
    yield from _timezone_problem(trigger.timezone)
    if trigger.start_at and trigger.end_at and _moment(trigger.end_at) <= _moment(trigger.start_at):
        yield "endAt must be later than startAt."


def _timezone_problem(name: str) -> Iterator[str]:
    if not is_timezone(name):
        yield f'"{name}" is not an IANA time zone such as Europe/Berlin.'


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
