"""Trigger kinds and the config of each (decisions C7)."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import TypeAliasType

from models.automation.automations.rules.attributes import BoundAttributes
from models.automation.automations.rules.graph.configs.types import (
    CelExpression,
    FieldKey,
    IsoMoment,
)
from models.automation.automations.rules.graph.shapes import Json, Reference
from models.automation.automations.rules.triggers.webhooks import TriggerFilter, Webhook
from models.core.absence import AbsentNotNull
from models.core.base import EXAMPLE_ID, Input, example
from models.core.schedules.cron import parse_cron
from models.core.schedules.desired import CATCHUP_SECONDS, Overlap
from models.core.schedules.timetables import Timetable


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


class Concurrency(Input, AbsentNotNull):
    """The limit of runs of one automation, or of one key, that go at a time."""

    limit: Annotated[int, Field(ge=1, le=1_000)]
    key_expression: CelExpression | None = None
    policy: Literal["queue", "skip", "cancel_oldest"] = "queue"


class _Trigger(Input, AbsentNotNull):
    concurrency: Concurrency | None = None
    attributes: BoundAttributes | None = None


class ManualTrigger(_Trigger):
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


class ScheduleTrigger(_Trigger):
    """Started by the clock: by `cron`, read in `timezone`, or every `intervalSeconds`.

    `overlap` says what happens while an earlier run still goes on. What fell due while the platform
    was away is made up for within `catchupWindowSeconds`. The payload is `{scheduledAt, timezone}`.
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


class WebhookTrigger(_Trigger, Webhook):
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


class RecordTrigger(_Trigger):
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


class RecordMatchesTrigger(_Trigger):
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


class RecordDateReachedTrigger(_Trigger):
    """Started so many minutes after (or, below zero, before) the date in a field of a record.

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


class FormSubmittedTrigger(_Trigger):
    """Started when the form is answered; the payload is `{record, submission}`."""

    model_config = example({"kind": "form_submitted", "formItemId": EXAMPLE_ID})

    kind: Literal["form_submitted"]
    form_item_id: Reference | None = None
    view_id: Reference | None = None


class ButtonPressedTrigger(_Trigger):
    """Started by the button in a field of a record; the payload is `{record, user}`."""

    model_config = example(
        {"kind": "button_pressed", "databaseId": EXAMPLE_ID, "fieldKey": "approve"}
    )

    kind: Literal["button_pressed"]
    database_id: Reference | None = None
    field_key: FieldKey | None = None


class DataSourceFinishedTrigger(_Trigger):
    """Started when a refresh of the data source ends; the payload is `{run}`.

    `any` includes a refresh that was cancelled.
    """

    model_config = example(
        {"kind": "data_source_finished", "dataSourceId": EXAMPLE_ID, "on": "failed"}
    )

    kind: Literal["data_source_finished"]
    data_source_id: Reference | None = None
    on: Literal["succeeded", "failed", "any"] = "any"


class AutomationFailedTrigger(_Trigger):
    """Started when a run of one of these automations, or of any, fails.

    The payload is `{automationId, runId, nodeId, error, triggerPayload}` of the failed run.
    """

    model_config = example({"kind": "automation_failed", "automationIds": [EXAMPLE_ID]})

    kind: Literal["automation_failed"]
    automation_ids: References | Literal["any"] = "any"


class AutomationCalledTrigger(_Trigger):
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


class TimeEntryCompletedTrigger(_Trigger):
    """Started when a time entry is completed; the payload is `{entry}`."""

    model_config = example({"kind": "time_entry_completed", "targetKind": "database_record"})

    kind: Literal["time_entry_completed"]
    target_kind: Literal["database_record", "item", "workspace"] | None = None
    database_id: Reference | None = None


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
