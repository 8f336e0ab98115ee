"""Records and queries on the wire (interface, Record; decisions C5, C17)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from models.base import Id, Input, InputId, JsonObject, Moment, Shape

DEFAULT_QUERY_LIMIT = 50
MAX_QUERY_LIMIT = 200
MAX_SORTS = 5


class CreateRecord(Input):
    """Body of create record; `title` and `data.title` are one value."""

    title: str | None = None
    data: JsonObject | None = None
    relations: JsonObject | None = None
    template_id: InputId | None = None


class UpdateRecord(Input):
    """Body of update record: `data` is merged per key, null clears."""

    title: str | None = None
    data: JsonObject | None = None
    relations: JsonObject | None = None
    archived: bool | None = None


class Sort(Input):
    """One key of an order; equal records follow newest first."""

    field: str
    direction: Literal["asc", "desc"] = "asc"
    nulls: Literal["first", "last"] = "last"


class RecordQuery(Input):
    """Body of query records.

    `filter` is a tree of `{and: […]}`, `{or: […]}`, `{not: …}` and leaves
    `{field, op, value, timezone?}`. `fields` keeps only those keys in the records. `limit` above
    the maximum is lowered to it. `timezone` (IANA) is where days begin unless a leaf says so.
    """

    filter: JsonObject | None = None
    sorts: Annotated[list[Sort], Field(max_length=MAX_SORTS)] | None = None
    search: Annotated[str, Field(max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1)] = DEFAULT_QUERY_LIMIT
    cursor: str | None = None
    fields: Annotated[list[str], Field(max_length=500)] | None = None
    timezone: str | None = None
    include_archived: bool = False
    view_id: InputId | None = None
    group_by: Any = None
    aggregates: list[JsonObject] | None = None


class RelatedRecord(Shape):
    """What a relation points at."""

    id: Id
    title: str
    database_id: Id


class RecordDetail(Shape):
    """A record. `data` holds the values that are set; `system` those the platform writes."""

    id: Id
    workspace_id: Id
    database_id: Id
    content_surface_id: Id | None
    title: str
    data: JsonObject
    relations: JsonObject
    computed: JsonObject
    system: JsonObject
    related: dict[str, list[RelatedRecord]]
    archived: bool
    created_by_user_id: Id | None
    updated_by_user_id: Id | None
    created_at: Moment
    updated_at: Moment


class RecordList(Shape):
    records: list[RecordDetail]
    cursor: str | None
