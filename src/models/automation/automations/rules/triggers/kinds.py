"""Trigger kinds, the config of each, and what they subscribe to."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import TypeAliasType

from models.automation.automations.rules.attributes import BoundAttributes
from models.automation.automations.rules.graph.shapes import (
    CelExpression,
    FieldKey,
    IsoMoment,
    Json,
    Reference,
)
from models.automation.automations.rules.triggers.webhooks import TriggerFilter, Webhook
from models.core.base import EXAMPLE_ID, AbsentNotNull, Id, Input, JsonObject, example
from models.core.schedules.cron import parse_cron
from models.core.schedules.timetables import CATCHUP_SECONDS, Overlap, Timetable
from models.messages.events.rules import RECORD_SUBSCRIPTIONS, EventKind
from runtime.ids import parse_id

Seconds = Annotated[int, Field(ge=0, le=31 * 86_400)]


class Concurrency(Input, AbsentNotNull):
    """The limit of runs of one automation, or of one key, that go at a time."""

    limit: Annotated[int, Field(ge=1, le=1_000)]
    key_expression: CelExpression | None = None
    policy: Literal["queue", "skip", "cancel_oldest"] = "queue"


class Trigger(Input, AbsentNotNull):
    """The keys that every kind of trigger has."""

    concurrency: Concurrency | None = None
    attributes: BoundAttributes | None = None


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


References = Annotated[list[Reference], Field(min_length=1, max_length=100)]


class ManualTrigger(Trigger):
    """Started by a person or by the API; the payload is what the call gives as `triggerPayload`.

    With `inputSchema`, a JSON Schema, other payloads are refused.
    """

    model_config = example(
        {
            "kind": "manual",
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
    )

    kind: Literal["manual"]
    input_schema: Json | None = None


class ScheduleTrigger(Trigger):
    """Started on a schedule: by `cron`, read in `timezone`, or every `intervalSeconds`.

    `overlap` says what happens while an earlier run is still open. Runs that fell due during an
    outage are started within `catchupWindowSeconds`. The payload is `{scheduledAt, timezone}`.
    """

    model_config = example({"kind": "schedule", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"})

    kind: Literal["schedule"]
    cron: Annotated[str, Field(max_length=256)] | None = None
    interval_seconds: Annotated[int, Field(ge=60, le=366 * 86_400)] | None = None
    timezone: Annotated[str, Field(max_length=64)] = "UTC"
    start_at: IsoMoment | None = None
    end_at: IsoMoment | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] = 0
    overlap: Overlap = "skip"
    catchup_window_seconds: Seconds = CATCHUP_SECONDS

    @property
    def timetable(self) -> Timetable:
        """The times it is due, if there is no `trigger_problems`; bounds are whole seconds."""
        return Timetable(
            zone=self.timezone,
            cron=None if self.cron is None else parse_cron(self.cron),
            interval_seconds=self.interval_seconds,
            start=None if self.start_at is None else self.instant(self.start_at),
            end=None if self.end_at is None else self.instant(self.end_at),
        )

    def instant(self, text: str) -> datetime:
        """A bound in UTC; without an offset it is a time of the zone (RFC 5545, 3.3.5)."""
        moment = datetime.fromisoformat(text).replace(microsecond=0)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(self.timezone))
        return moment.astimezone(UTC)


class WebhookTrigger(Trigger, Webhook):
    """Started by an HTTP call to the automation's `webhookPath`.

    The payload is `{method, headers, query, body, webhookId}`. The secret is the automation's own,
    or the workspace's secret `secretName`: a password with the auth `basic` (any user name), the
    value of `header` with the auth `header`.
    """

    model_config = example(
        {
            "kind": "webhook",
            "auth": "signature",
            "signature": {
                "scheme": "hmac_sha256",
                "header": "X-Hub-Signature-256",
                "encoding": "hex",
            },
            "dedupe": {"source": "header", "name": "X-Delivery-Id"},
            "filter": 'trigger.body.action == "opened"',
        }
    )

    kind: Literal["webhook"]


class FormSubmittedTrigger(Trigger):
    """Started when the form is answered; the payload is `{record, submission}`."""

    model_config = example({"kind": "form_submitted", "formItemId": EXAMPLE_ID})

    kind: Literal["form_submitted"]
    form_item_id: Reference | None = None
    view_id: Reference | None = None


class ButtonPressedTrigger(Trigger):
    """Started by the button in a field of a record; the payload is `{record, user}`."""

    model_config = example(
        {"kind": "button_pressed", "databaseId": EXAMPLE_ID, "fieldKey": "approve"}
    )

    kind: Literal["button_pressed"]
    database_id: Reference | None = None
    field_key: FieldKey | None = None


class DataSourceFinishedTrigger(Trigger):
    """Started when a refresh of the data source ends; the payload is `{run}`.

    `any` includes a refresh that was cancelled.
    """

    model_config = example(
        {"kind": "data_source_finished", "dataSourceId": EXAMPLE_ID, "on": "failed"}
    )

    kind: Literal["data_source_finished"]
    data_source_id: Reference | None = None
    on: Literal["succeeded", "failed", "any"] = "any"


class AutomationFailedTrigger(Trigger):
    """Started when a run of one of these automations, or of any, fails.

    The payload is `{automationId, runId, nodeId, error, triggerPayload}` of the failed run.
    """

    model_config = example({"kind": "automation_failed", "automationIds": [EXAMPLE_ID]})

    kind: Literal["automation_failed"]
    automation_ids: References | Literal["any"] = "any"


class AutomationCalledTrigger(Trigger):
    """Started by a call_automation node of another automation.

    The payload is the `input` of the node.
    """

    model_config = example(
        {
            "kind": "automation_called",
            "inputSchema": {"type": "object", "required": ["orderId"]},
        }
    )

    kind: Literal["automation_called"]
    input_schema: Json | None = None


class TimeEntryCompletedTrigger(Trigger):
    """Started when a time entry is completed; the payload is `{entry}`."""

    model_config = example({"kind": "time_entry_completed", "targetKind": "database_record"})

    kind: Literal["time_entry_completed"]
    target_kind: Literal["database_record", "item", "workspace"] | None = None
    database_id: Reference | None = None


Keys = Annotated[list[FieldKey], Field(max_length=500)]


class RecordTrigger(Trigger):
    """Started when a record of the database is created, updated or deleted.

    The payload is `{record, before, changedKeys, actor}`. `fieldKeys`, for record_updated, are the
    fields whose changes count. Changes of one record are merged until it has been quiet for
    `debounceSeconds`. Imports and refreshes count with `includeSystemChanges`.
    """

    model_config = example(
        {
            "kind": "record_updated",
            "databaseId": EXAMPLE_ID,
            "fieldKeys": ["status"],
            "filter": {"field": "record.data.status", "op": "eq", "value": "done"},
        }
    )

    kind: Literal["record_created", "record_updated", "record_deleted"]
    database_id: Reference | None = None
    field_keys: Keys | None = None
    filter: TriggerFilter | None = None
    debounce_seconds: Seconds = 0
    include_system_changes: bool = False


class RecordMatchesTrigger(Trigger):
    """Started when a record begins to satisfy the filter; the payload is `{record, before}`."""

    model_config = example(
        {
            "kind": "record_matches",
            "databaseId": EXAMPLE_ID,
            "filter": {"field": "record.data.stock", "op": "lt", "value": 5},
        }
    )

    kind: Literal["record_matches"]
    database_id: Reference | None = None
    filter: TriggerFilter | None = None


class RecordDateReachedTrigger(Trigger):
    """Started a number of minutes after (if negative, before) the date in a field of a record.

    The payload is `{record, dueAt}`.
    """

    model_config = example(
        {
            "kind": "record_date_reached",
            "databaseId": EXAMPLE_ID,
            "fieldKey": "due",
            "offsetMinutes": -1440,
            "timezone": "Europe/Berlin",
        }
    )

    kind: Literal["record_date_reached"]
    database_id: Reference | None = None
    field_key: FieldKey | None = None
    offset_minutes: Annotated[int, Field(ge=-527_040, le=527_040)] = 0
    timezone: Annotated[str, Field(max_length=64)] = "UTC"


TriggerConfig = TypeAliasType(
    "TriggerConfig",
    Annotated[
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
        Field(discriminator="kind", description="What starts an automation, by its kind."),
    ],
)

RECORD_TRIGGERS = tuple(TriggerKind(kind) for kind in RECORD_SUBSCRIPTIONS)
"""The triggers that subscribe to changes of records."""

EVENT_TRIGGERS = frozenset(
    {
        *RECORD_TRIGGERS,
        *(TriggerKind(kind) for kind in EventKind if kind is not EventKind.RECORD_CHANGED),
    }
)
"""The triggers that subscribe to events."""

_SUBJECTS = ("databaseId", "formItemId", "dataSourceId")


def subscribes(trigger_config: JsonObject) -> bool:
    """True when a trigger subscribes to events at all."""
    return trigger_config["kind"] in EVENT_TRIGGERS


def subject_of(trigger_config: JsonObject) -> Id | None:
    """The id of what a trigger subscribes to; None when it matches events of any subject."""
    if trigger_config["kind"] == TriggerKind.TIME_ENTRY_COMPLETED:
        return None
    named: Any = next((trigger_config[key] for key in _SUBJECTS if key in trigger_config), None)
    return None if named is None else parse_id(named)


def includes_system_changes(trigger_config: JsonObject) -> bool:
    """True when a trigger also answers changes by the platform itself: imports, refreshes.

    A trigger on dates always does.
    """
    if trigger_config["kind"] == TriggerKind.RECORD_DATE_REACHED:
        return True
    return bool(trigger_config.get("includeSystemChanges"))
