"""Exports on the wire (ADR 0013)."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from models.content.files.queries import StoredFile
from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape
from models.core.openapi import documented_as
from models.core.pagination import Listed
from models.data.records.shapes import MAX_SORTS, Sort
from models.messages.jobs.rules import JobStatus


class ExportFormat(StrEnum):
    CSV = "csv"
    XLSX = "xlsx"


class CreateExport(Input):
    """Body of export: a record query without its pages.

    Moments are written in `timezone` (IANA; UTC unless given).
    """

    format: Annotated[ExportFormat, Field(strict=False)]
    filter: Annotated[JsonObject, documented_as("Filter")] | None = None
    sorts: Annotated[list[Sort], Field(max_length=MAX_SORTS)] | None = None
    search: Annotated[str, Field(max_length=200)] | None = None
    view_id: InputId | None = None
    fields: Annotated[list[str], Field(max_length=500)] | None = None
    include_archived: bool = False
    timezone: str | None = None


class ExportDetail(Shape):
    """An export; `recordCount` grows while it runs, `file` is set when it has succeeded.

    Both are kept for 30 days; a file that was placed in the tree stays there.
    """

    id: Id
    status: JobStatus
    format: ExportFormat
    record_count: int
    file: StoredFile | None
    error: str | None
    waiting_for_worker_since: Moment | None = None
    created_at: Moment
    completed_at: Moment | None


class ExportList(Listed):
    """A page of exports, each without its `file`."""

    exports: list[ExportDetail]
