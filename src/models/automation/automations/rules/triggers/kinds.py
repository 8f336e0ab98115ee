"""Trigger kinds and the config of each (decisions C7)."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import TypeAliasType

from models.automation.automations.rules.graph.configs.types import FieldKey, IsoMoment
from models.automation.automations.rules.graph.shapes import Json, Reference
from models.automation.automations.rules.triggers.base import Seconds, Trigger
from models.automation.automations.rules.triggers.records import (
    RecordDateReachedTrigger,
    RecordMatchesTrigger,
    RecordTrigger,
)
from models.automation.automations.rules.triggers.webhooks import Webhook
from models.core.base import EXAMPLE_ID, example
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
