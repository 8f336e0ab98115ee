"""Kinds that read and write records."""

from typing import Annotated

from pydantic import Field

from models.automation.automations.rules.graph.configs.types import FieldKey
from models.core.base import EXAMPLE_ID, Input, InputId, JsonObject, example
from models.data.records.rules.write.matching import MAX_BY
from models.data.records.shapes import RecordQuery, RelationsInput


class QueryRecordsConfig(Input):
    """Read one page of records; the output is `{records, cursor, count}`."""

    model_config = example(
        {
            "databaseId": EXAMPLE_ID,
            "query": {
                "filter": {
                    "and": [
                        {"field": "status", "op": "eq", "value": "open"},
                        {
                            "field": "price",
                            "op": "gte",
                            "value": {"type": "trigger", "value": "minimum"},
                        },
                    ]
                },
                "sorts": [{"field": "due", "direction": "asc"}],
                "limit": 50,
            },
        }
    )

    database_id: InputId
    query: Annotated[RecordQuery, Field(default_factory=RecordQuery)]


class CreateRecordConfig(Input):
    """Create a record; the output is `{record, created}`.

    With `upsertBy`, a record whose values of these fields are equal is updated instead.
    """

    model_config = example(
        {
            "databaseId": EXAMPLE_ID,
            "title": {"type": "template", "value": "Order {{ trigger.number }}"},
            "data": {"email": {"type": "trigger", "value": "email"}, "status": "open"},
            "upsertBy": ["email"],
        }
    )

    database_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    relations: RelationsInput | None = None
    upsert_by: Annotated[list[FieldKey], Field(max_length=MAX_BY, default_factory=list)]


class UpdateRecordConfig(Input):
    """Change a record; the output is `{record}`.

    Values are merged per key; null clears one, and a title of null the title.
    """

    model_config = example(
        {
            "recordId": {"type": "trigger", "value": "record.id"},
            "data": {"status": "done", "note": None},
        }
    )

    database_id: InputId | None = None
    record_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    relations: RelationsInput | None = None


class DeleteRecordConfig(Input):
    """Put a record into the trash; the output is `{record}` as it was."""

    model_config = example({"recordId": {"type": "item", "value": "id"}})

    database_id: InputId | None = None
    record_id: InputId
