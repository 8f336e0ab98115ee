"""The configs of triggers on records (decisions C7)."""

from typing import Annotated, Literal

from pydantic import Field

from models.automation.automations.rules.graph.configs.types import FieldKey
from models.automation.automations.rules.graph.shapes import Reference
from models.automation.automations.rules.triggers.base import Seconds, Trigger
from models.automation.automations.rules.triggers.webhooks import TriggerFilter
from models.core.base import EXAMPLE_ID, example

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
