"""Reading trigger configs and checking them, and payloads against an input schema."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NoReturn

import jsonschema_rs
import pydantic
from pydantic import TypeAdapter
from pydantic_core import ErrorDetails

from models.automation.automations.rules.attributes import attribute_problems, early_problem
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.language.filters import CHANGE, STATE, filter_is_wrong
from models.automation.automations.rules.triggers import kinds
from models.core.base import JsonObject, deferred_adapter
from models.core.problems import place, refusal, sentence
from models.core.schedules import timetables
from models.core.values import is_timezone
from runtime.errors import Detail, ValidationError

Problem = tuple[str, str]
"""A place in a trigger config, empty for the whole, and a sentence."""

_ADAPTER: TypeAdapter[kinds.TriggerConfig] = deferred_adapter(kinds.TriggerConfig)


def parse_trigger_config(config: JsonObject) -> JsonObject:
    """A client's trigger config as it is stored: defaults filled in, absent keys left out.

    Raises ValidationError with a path below `triggerConfig` for everything of the wrong shape.
    """
    try:
        trigger = _ADAPTER.validate_python(config)
    except pydantic.ValidationError as error:
        problems = error.errors(include_url=False)
        raise refusal([_detail(problem, config) for problem in problems]) from None
    stored: JsonObject = trigger.model_dump(mode="json", by_alias=True)
    return stored


def _detail(problem: ErrorDetails, given: JsonObject) -> Detail:
    if not problem["loc"]:
        return Detail("triggerConfig.kind", f"Must be one of: {', '.join(kinds.TriggerKind)}.")
    where = ".".join(filter(None, ["triggerConfig", place(problem, given)]))
    return Detail(where, sentence(problem, kinds.TriggerConfig))


def read_trigger(config: JsonObject) -> kinds.TriggerConfig:
    """Read a config that `parse_trigger_config` stored."""
    return _ADAPTER.validate_python(config)


def trigger_problems(trigger: kinds.TriggerConfig) -> Iterator[Detail]:
    """Reasons not to publish an automation with this trigger, as far as the config tells."""
    for path, message in (*_kind_problems(trigger), *_missing_keys(trigger)):
        yield Detail(f"triggerConfig.{path}" if path else "triggerConfig", message)
    expression = trigger.concurrency and trigger.concurrency.key_expression
    if expression and (problem := early_problem(expression)) is not None:
        yield Detail("triggerConfig.concurrency.keyExpression", problem)
    for path, message in attribute_problems(trigger.attributes or {}):
        yield Detail(f"triggerConfig.{path}", message)


def _kind_problems(trigger: kinds.TriggerConfig) -> Iterator[Problem]:
    if isinstance(trigger, kinds.ScheduleTrigger):
        yield from _schedule_problems(trigger)
    elif isinstance(trigger, kinds.WebhookTrigger):
        yield from kinds.webhook_problems(trigger)
    elif isinstance(trigger, kinds.RecordDateReachedTrigger):
        yield from _timezone_problem(trigger.timezone)
    elif isinstance(trigger, kinds.RecordTrigger):
        yield from filter_is_wrong(trigger.filter, CHANGE)
        if trigger.field_keys and trigger.kind != "record_updated":
            yield "fieldKeys", "Only allowed with record_updated."
    elif isinstance(trigger, kinds.RecordMatchesTrigger):
        yield from filter_is_wrong(trigger.filter, STATE)
    elif isinstance(trigger, kinds.ManualTrigger | kinds.AutomationCalledTrigger):
        problem = schema_problem(trigger.input_schema or {})
        if problem is not None:
            yield "inputSchema", problem


_NEEDED: Mapping[str, tuple[str, ...]] = {
    "record_created": ("database_id",),
    "record_updated": ("database_id",),
    "record_deleted": ("database_id",),
    "record_matches": ("database_id", "filter"),
    "record_date_reached": ("database_id", "field_key"),
    # A view of the kind form shows records; only forms take submissions.
    "form_submitted": ("form_item_id",),
    "button_pressed": ("database_id", "field_key"),
    "data_source_finished": ("data_source_id",),
}
"""The keys that a draft may lack and a published trigger may not, by kind."""


def needed_keys(kind: str, model: type[pydantic.BaseModel]) -> list[str]:
    """The keys that a trigger of this kind must have to be published, as its config names them."""
    return [str(model.model_fields[name].alias) for name in _NEEDED.get(kind, ())]


def _missing_keys(trigger: kinds.TriggerConfig) -> Iterator[Problem]:
    names = _NEEDED.get(trigger.kind, ())
    for name, key in zip(names, needed_keys(trigger.kind, type(trigger)), strict=True):
        if getattr(trigger, name) is None:
            yield key, "is required"


def _schedule_problems(trigger: kinds.ScheduleTrigger) -> Iterator[Problem]:
    if (trigger.cron is None) is (trigger.interval_seconds is None):
        yield "", "A schedule needs either cron or intervalSeconds."
    if trigger.cron is not None:
        if (problem := timetables.cron_problem(trigger.cron)) is not None:
            yield "cron", problem
        elif (
            timetables.Timetable(cron=timetables.parse_cron(trigger.cron)).next_after(
                timetables.EARLIEST
            )
            is None
        ):
            yield "cron", "The cron expression never matches a date."
    yield from _timezone_problem(trigger.timezone)
    yield from _bound_problems(trigger)


def _bound_problems(trigger: kinds.ScheduleTrigger) -> Iterator[Problem]:
    given = {"startAt": trigger.start_at, "endAt": trigger.end_at}
    years = {name: datetime.fromisoformat(text).year for name, text in given.items() if text}
    outside = [
        name
        for name, year in years.items()
        if not timetables.EARLIEST.year <= year <= timetables.LAST_YEAR
    ]
    for name in outside:
        yield (
            name,
            f"Must be between the years {timetables.EARLIEST.year} and {timetables.LAST_YEAR}.",
        )
    if outside or not trigger.start_at or not trigger.end_at or not is_timezone(trigger.timezone):
        return
    if trigger.instant(trigger.end_at) <= trigger.instant(trigger.start_at):
        yield "endAt", "Must be later than startAt."


def _timezone_problem(name: str) -> Iterator[Problem]:
    if not is_timezone(name):
        yield "timezone", f'"{name}" is not an IANA time zone such as Europe/Berlin.'


MAX_DETAILS = 20
_LONGEST_REASON = 300
"""The library quotes what it refuses, however long that is."""


def schema_problem(schema: JsonObject) -> str | None:
    """The reason why a schema cannot be used, or None."""
    try:
        _validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"Invalid JSON Schema: {_reason(error)}"
    return None


def check_payload(trigger_config: JsonObject, payload: JsonObject) -> None:
    """Raises ValidationError at `triggerPayload.…` when the trigger's schema refuses it.

    Nothing is fetched for a `$ref`, and patterns run on an engine without backtracking.
    """
    schema = trigger_config.get("inputSchema")
    if schema is None:
        return
    details = []
    for error in _validator(schema).iter_errors(payload):
        path = ".".join(["triggerPayload", *(str(part) for part in error.instance_path)])
        details.append(Detail(path, shorten(error.message, _LONGEST_REASON)))
        if len(details) == MAX_DETAILS:
            break
    if details:
        raise ValidationError(
            f"The payload does not match the automation's input schema: {details[0].message}",
            details,
        )


def _validator(schema: JsonObject) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
    )


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema and is not fetched")


def _reason(error: Exception) -> str:
    message = getattr(error, "message", None) or str(error)
    return shorten(str(message).splitlines()[0], _LONGEST_REASON)
