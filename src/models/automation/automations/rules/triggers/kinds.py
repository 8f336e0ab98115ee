"""Trigger kinds, the config of each, also of webhooks, and what they subscribe to."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import TypeAliasType

from models.automation.automations.rules.attributes import READABLE, BoundAttributes, early_problem
from models.automation.automations.rules.graph import shapes as graph_shapes
from models.automation.automations.rules.language.filters import filter_problems
from models.automation.automations.rules.language.paths import compile_path
from models.automation.secrets.rules import SecretName
from models.core.base import EXAMPLE_ID, AbsentNotNull, Id, Input, JsonObject, example
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import compile_expression
from models.core.http_requests import HeaderName
from models.core.openapi import documented_as
from models.core.schedules.timetables import CATCHUP_SECONDS, Overlap, Timetable, parse_cron
from models.messages.events.rules import RECORD_SUBSCRIPTIONS, EventKind
from runtime.ids import parse_id

MAX_WAIT_SECONDS = 30
"""The longest a call waits for the answer of its run (interface.md#webhooks)."""
SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105  # a name, not a secret
"""The header that holds the secret with the auth `header`, unless the config says otherwise."""

_PLACEHOLDER = re.compile(r"{[^{}]*}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")


TriggerFilter = Annotated[
    graph_shapes.Json | graph_shapes.CelExpression,
    documented_as("Filter", "CelExpression", "PartialConfig"),
]


class Signature(Input, AbsentNotNull):
    """The way a call is signed.

    `standard_webhooks` is the specification of that name; the other keys are for `hmac_sha256`:
    the digest of `signedContent` is in `header`, optionally after `sha256=`. With a
    `timestampHeader` the call must also be recent; when that is `header` itself, both are in it as
    `t=…,v1=…`.
    """

    scheme: Literal["standard_webhooks", "hmac_sha256"] = "standard_webhooks"
    header: HeaderName | None = None
    encoding: Literal["hex", "base64"] = "hex"
    timestamp_header: HeaderName | None = None
    signed_content: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    tolerance_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300

    @property
    def content(self) -> str:
        """The signed text, with the placeholders `{body}` and `{timestamp}`."""
        default = "{body}" if self.timestamp_header is None else "{timestamp}.{body}"
        return self.signed_content or default


class Deduplication(Input, AbsentNotNull):
    """Calls with the same key within the window are one.

    A `path` leads into the payload, such as `body.id`, or into its body, such as `id`.
    """

    source: Literal["header", "path", "body_hash"]
    name: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    window_seconds: Annotated[int, Field(ge=1, le=7 * 86_400)] = 86_400


class Webhook(Input, AbsentNotNull):
    """The settings of a webhook trigger beside its kind.

    The secret is the automation's own, or the workspace's secret `secretName`: a password with
    `basic` (any user name), the value of `header` with `header`.
    """

    methods: Annotated[
        list[Literal["GET", "POST", "PUT", "PATCH", "DELETE"]],
        Field(min_length=1, max_length=5, default_factory=lambda: ["POST"]),
    ]
    auth: Literal["signature", "basic", "header", "none"] = "signature"
    header: HeaderName | None = None
    secret_name: SecretName | None = None
    signature: Signature | None = None
    dedupe: Deduplication | None = None
    respond: Literal["immediate", "wait"] = "immediate"
    wait_seconds: Annotated[int, Field(ge=1, le=MAX_WAIT_SECONDS)] = MAX_WAIT_SECONDS
    filter: TriggerFilter | None = None

    @property
    def signing(self) -> Signature:
        """The way calls are signed with the auth `signature`."""
        return self.signature or Signature()


def webhook_problems(webhook: Webhook) -> Iterator[tuple[str, str]]:
    """Reasons not to publish an automation with this webhook: place in the config, sentence."""
    if webhook.signature is not None:
        if webhook.auth != "signature":
            yield "signature", "Only allowed with the auth signature."
        yield from _signature_problems(webhook.signature)
    if webhook.header is not None and webhook.auth != "header":
        yield "header", "Only allowed with the auth header."
    if webhook.secret_name is not None and webhook.auth == "none":
        yield "secretName", "Not allowed with the auth none."
    if webhook.dedupe is not None:
        yield from _dedupe_problems(webhook.dedupe)
    yield from _filter_problems(webhook)


def _signature_problems(signature: Signature) -> Iterator[tuple[str, str]]:
    if signature.scheme == "standard_webhooks":
        for name in ("header", "timestamp_header", "signed_content"):
            if getattr(signature, name) is not None:
                alias = Signature.model_fields[name].alias
                yield f"signature.{alias}", "Only allowed with the scheme hmac_sha256."
        return
    if signature.header is None:
        yield "signature.header", "Required: the name of the header that holds the signature."
    wanted = ["{body}"] if signature.timestamp_header is None else ["{body}", "{timestamp}"]
    if sorted(_PLACEHOLDER.findall(signature.content)) != wanted:
        yield (
            "signature.signedContent",
            "Must hold {body} once, {timestamp} once with a timestampHeader, no other placeholder.",
        )


def _dedupe_problems(dedupe: Deduplication) -> Iterator[tuple[str, str]]:
    if (dedupe.name is None) is not (dedupe.source == "body_hash"):
        yield "dedupe.name", "Required with the sources header and path, and only there."
    elif dedupe.source == "header" and not _HEADER.fullmatch(dedupe.name or ""):
        yield "dedupe.name", "Invalid header name."
    elif dedupe.source == "path":
        try:
            compile_path(dedupe.name or "")
        except BindingError as error:
            yield "dedupe.name", error.message


def _filter_problems(webhook: Webhook) -> Iterator[tuple[str, str]]:
    if isinstance(webhook.filter, dict):
        yield from filter_problems(webhook.filter, variables=READABLE)
    elif webhook.filter is not None:
        problem = early_problem(webhook.filter)
        if problem is not None:
            yield "filter", problem
        elif not compile_expression(webhook.filter).decides:
            yield "filter", "The expression must return true or false."


Seconds = Annotated[int, Field(ge=0, le=31 * 86_400)]


class Concurrency(Input, AbsentNotNull):
    """The limit of runs of one automation, or of one key, that go at a time."""

    limit: Annotated[int, Field(ge=1, le=1_000)]
    key_expression: graph_shapes.CelExpression | None = None
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


References = Annotated[list[graph_shapes.Reference], Field(min_length=1, max_length=100)]


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
    input_schema: graph_shapes.Json | None = None


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
    start_at: graph_shapes.IsoMoment | None = None
    end_at: graph_shapes.IsoMoment | None = None
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
    form_item_id: graph_shapes.Reference | None = None
    view_id: graph_shapes.Reference | None = None


class ButtonPressedTrigger(Trigger):
    """Started by the button in a field of a record; the payload is `{record, user}`."""

    model_config = example(
        {"kind": "button_pressed", "databaseId": EXAMPLE_ID, "fieldKey": "approve"}
    )

    kind: Literal["button_pressed"]
    database_id: graph_shapes.Reference | None = None
    field_key: graph_shapes.FieldKey | None = None


class DataSourceFinishedTrigger(Trigger):
    """Started when a refresh of the data source ends; the payload is `{run}`.

    `any` includes a refresh that was cancelled.
    """

    model_config = example(
        {"kind": "data_source_finished", "dataSourceId": EXAMPLE_ID, "on": "failed"}
    )

    kind: Literal["data_source_finished"]
    data_source_id: graph_shapes.Reference | None = None
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
    input_schema: graph_shapes.Json | None = None


class TimeEntryCompletedTrigger(Trigger):
    """Started when a time entry is completed; the payload is `{entry}`."""

    model_config = example({"kind": "time_entry_completed", "targetKind": "database_record"})

    kind: Literal["time_entry_completed"]
    target_kind: Literal["database_record", "item", "workspace"] | None = None
    database_id: graph_shapes.Reference | None = None


Keys = Annotated[list[graph_shapes.FieldKey], Field(max_length=500)]


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
    database_id: graph_shapes.Reference | None = None
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
    database_id: graph_shapes.Reference | None = None
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
    database_id: graph_shapes.Reference | None = None
    field_key: graph_shapes.FieldKey | None = None
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
