"""Trigger kinds and the config of each (decisions C7)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import pydantic
from pydantic import Field, TypeAdapter
from pydantic_core import ErrorDetails

from models.automation.automations.rules.graph.configs.types import CelText, FieldKey, IsoMoment
from models.automation.automations.rules.graph.shapes import Json, Reference
from models.automation.automations.rules.triggers.filters import CHANGE, STATE, filter_is_wrong
from models.automation.automations.rules.triggers.payload_expressions import early_problem
from models.automation.automations.rules.triggers.payloads import schema_problem
from models.automation.automations.rules.triggers.webhooks import Webhook, webhook_problems
from models.core.absence import AbsentNotNull
from models.core.base import Input, JsonObject
from models.core.problems import place, refusal, sentence
from models.core.schedules.cron import cron_problem, parse_cron
from models.core.schedules.timetables import EARLIEST, LAST_YEAR, Timetable
from models.core.schedules.timezones import is_timezone
from runtime.errors import Detail


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


Seconds = Annotated[int, Field(ge=0, le=31 * 86_400)]
Keys = Annotated[list[FieldKey], Field(max_length=500)]
References = Annotated[list[Reference], Field(min_length=1, max_length=100)]
Filter = Json | CelText

Problem = tuple[str, str]
"""A place in a trigger config, empty for the whole, and a sentence."""


class Concurrency(Input, AbsentNotNull):
    """How many runs of one automation, or of one key, go at a time."""

    limit: Annotated[int, Field(ge=1, le=1_000)]
    key_expression: CelText | None = None
    policy: Literal["queue", "skip", "cancel_oldest"] = "queue"


class _Trigger(Input, AbsentNotNull):
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

    @property
    def timetable(self) -> Timetable:
        """When it is due, if there is no `trigger_problems`; bounds are whole seconds."""
        return Timetable(
            zone=self.timezone,
            cron=None if self.cron is None else parse_cron(self.cron),
            every=self.interval_seconds,
            start=None if self.start_at is None else self.instant(self.start_at),
            end=None if self.end_at is None else self.instant(self.end_at),
        )

    def instant(self, bound: str) -> datetime:
        """A bound in UTC; without an offset it is a time of the zone (RFC 5545, 3.3.5)."""
        moment = datetime.fromisoformat(bound).replace(microsecond=0)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(self.timezone))
        return moment.astimezone(UTC)


class WebhookTrigger(_Trigger, Webhook):
    kind: Literal["webhook"]


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
    automation_ids: References | Literal["any"] = "any"


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
        problems = error.errors(include_url=False)
        raise refusal([_detail(problem, given) for problem in problems]) from None
    stored: JsonObject = trigger.model_dump(mode="json", by_alias=True)
    return stored


def _detail(problem: ErrorDetails, given: JsonObject) -> Detail:
    if not problem["loc"]:
        return Detail("triggerConfig.kind", f"It must be one of: {', '.join(TriggerKind)}.")
    where = ".".join(filter(None, ["triggerConfig", place(problem, given)]))
    return Detail(where, sentence(problem))


def read_trigger(stored: JsonObject) -> TriggerConfig:
    """What `parse_trigger_config` stored."""
    return _ADAPTER.validate_python(stored)


def trigger_problems(trigger: TriggerConfig) -> Iterator[Detail]:
    """Why an automation with this trigger cannot be published, as far as the config tells."""
    for path, message in (*_kind_problems(trigger), *_missing_keys(trigger)):
        yield Detail(f"triggerConfig.{path}" if path else "triggerConfig", message)
    expression = trigger.concurrency and trigger.concurrency.key_expression
    if expression and (problem := early_problem(expression)) is not None:
        yield Detail("triggerConfig.concurrency.keyExpression", problem)


def _kind_problems(trigger: TriggerConfig) -> Iterator[Problem]:
    if isinstance(trigger, ScheduleTrigger):
        yield from _schedule_problems(trigger)
    elif isinstance(trigger, WebhookTrigger):
        yield from webhook_problems(trigger)
    elif isinstance(trigger, RecordDateReachedTrigger):
        yield from _timezone_problem(trigger.timezone)
    elif isinstance(trigger, RecordTrigger):
        yield from filter_is_wrong(trigger.filter, CHANGE)
        if trigger.field_keys and trigger.kind != "record_updated":
            yield "fieldKeys", "Only record_updated takes it."
    elif isinstance(trigger, RecordMatchesTrigger):
        yield from filter_is_wrong(trigger.filter, STATE)
    elif isinstance(trigger, ManualTrigger | AutomationCalledTrigger):
        problem = schema_problem(trigger.input_schema or {})
        if problem is not None:
            yield "inputSchema", problem


_NEEDED = {
    "record_created": ("database_id",),
    "record_updated": ("database_id",),
    "record_deleted": ("database_id",),
    "record_matches": ("database_id", "filter"),
    "record_date_reached": ("database_id", "field_key"),
    "button_pressed": ("database_id", "field_key"),
    "data_source_finished": ("data_source_id",),
}


def _missing_keys(trigger: TriggerConfig) -> Iterator[Problem]:
    for name in _NEEDED.get(trigger.kind, ()):
        if getattr(trigger, name) is None:
            yield str(type(trigger).model_fields[name].alias), "This key is required."
    if isinstance(trigger, FormSubmittedTrigger) and trigger.form_item_id is None:
        # A view of the kind form shows records; only forms take submissions.
        yield "formItemId", "This key is required: submissions are made to the item of a form."


def _schedule_problems(trigger: ScheduleTrigger) -> Iterator[Problem]:
    if (trigger.cron is None) is (trigger.interval_seconds is None):
        yield "", "A schedule needs either cron or intervalSeconds."
    if trigger.cron is not None:
        if (problem := cron_problem(trigger.cron)) is not None:
            yield "cron", problem
        elif Timetable(cron=parse_cron(trigger.cron)).next_after(EARLIEST) is None:
            yield "cron", "The cron expression names no day that ever comes, such as 30 February."
    yield from _timezone_problem(trigger.timezone)
    yield from _bound_problems(trigger)


def _bound_problems(trigger: ScheduleTrigger) -> Iterator[Problem]:
    given = {"startAt": trigger.start_at, "endAt": trigger.end_at}
    years = {name: datetime.fromisoformat(text).year for name, text in given.items() if text}
    outside = [name for name, year in years.items() if not EARLIEST.year <= year <= LAST_YEAR]
    for name in outside:
        yield name, f"It must lie between the years {EARLIEST.year} and {LAST_YEAR}."
    if outside or not trigger.start_at or not trigger.end_at or not is_timezone(trigger.timezone):
        return
    if trigger.instant(trigger.end_at) <= trigger.instant(trigger.start_at):
        yield "endAt", "It must be later than startAt."


def _timezone_problem(name: str) -> Iterator[Problem]:
    if not is_timezone(name):
        yield "timezone", f'"{name}" is not an IANA time zone such as Europe/Berlin.'
