"""Kinds that read and write records."""

from typing import Annotated, Any

from pydantic import Field

from models.automations.rules.configs.types import FieldKey
from models.base import Input, InputId, JsonObject
from models.records.rules.matching import MAX_BY


class RecordQuery(Input):
    """The body of a records query (decisions C5); the query itself says what is wrong inside."""

    filter: JsonObject | None = None
    sorts: Annotated[list[JsonObject], Field(max_length=10)] | None = None
    search: Annotated[str, Field(max_length=1_000)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: str | None = None
    fields: Annotated[list[FieldKey], Field(max_length=500)] | None = None
    timezone: str | None = None
    include_archived: bool = False
    view_id: InputId | None = None
    group_by: Any = None
    aggregates: list[JsonObject] | None = None


class QueryRecordsConfig(Input):
    database_id: InputId
    query: RecordQuery = RecordQuery()


class CreateRecordConfig(Input):
    """With `upsertBy`, a record whose values of these fields are equal is updated instead."""

    database_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    upsert_by: Annotated[list[FieldKey], Field(max_length=MAX_BY, default_factory=list)]


class UpdateRecordConfig(Input):
    database_id: InputId | None = None
    record_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)


class DeleteRecordConfig(Input):
    database_id: InputId | None = None
    record_id: InputId
