"""Kinds that read and write records."""

from typing import Annotated

from pydantic import Field

from models.automation.automations.rules.graph.configs.types import FieldKey
from models.core.base import Input, InputId, JsonObject
from models.data.records.rules.write.matching import MAX_BY
from models.data.records.shapes import RecordQuery


class QueryRecordsConfig(Input):
    database_id: InputId
    query: RecordQuery = RecordQuery()


class CreateRecordConfig(Input):
    """With `upsertBy`, a record whose values of these fields are equal is updated instead."""

    database_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    relations: JsonObject | None = None
    upsert_by: Annotated[list[FieldKey], Field(max_length=MAX_BY, default_factory=list)]


class UpdateRecordConfig(Input):
    """Values merged per key; null clears one, and a title of null the title."""

    database_id: InputId | None = None
    record_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    relations: JsonObject | None = None


class DeleteRecordConfig(Input):
    database_id: InputId | None = None
    record_id: InputId
