"""Records and queries on the wire (interface.md#record, interface.md#record-queries)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from models.core.base import Id, Input, InputId, JsonObject, Moment, Nullable, Shape
from models.core.keys import Key
from models.core.openapi import documented_as
from models.core.pagination import Listed
from models.core.values import MomentText
from models.data.fields.rules.settings import Aggregate

DEFAULT_QUERY_LIMIT = 50
MAX_QUERY_LIMIT = 200
MAX_SORTS = 5
MAX_AGGREGATES = 50
MAX_COLOR_RULES = 10
MAX_OPERATIONS = 500

_RECORD_ID: JsonObject = {"type": "string", "format": "uuid"}
_RECORD_IDS: JsonObject = {"type": "array", "items": _RECORD_ID}
RelationsInput = Annotated[
    JsonObject,
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"anyOf": [_RECORD_IDS, _RECORD_ID, {"type": "null"}]},
        }
    ),
]
"""Ids of records by the keys of relation fields, read with the fields of the database.

One id does where a field holds one record at most; null empties it.
"""
Relations = Annotated[
    JsonObject, WithJsonSchema({"type": "object", "additionalProperties": _RECORD_IDS})
]


class CreateRecord(Input):
    """Body of create record; `title` and `data.title` are one value."""

    title: str | None = None
    data: JsonObject | None = None
    relations: RelationsInput | None = None
    template_id: InputId | None = None


class UpdateRecord(Input):
    """Body of update record: `data` is merged per key, null clears."""

    title: str | None = None
    data: JsonObject | None = None
    relations: RelationsInput | None = None
    archived: bool | None = None


class _OfRecord(Input):
    """With `expectedUpdatedAt`, the batch is refused when the record was changed since."""

    record_id: InputId
    expected_updated_at: MomentText | None = None


class CreateOperation(CreateRecord):
    """Create a record."""

    op: Literal["create"]


class UpsertOperation(CreateRecord):
    """Update the record whose `upsertBy` fields have these values, or create it."""

    op: Literal["upsert"]
    upsert_by: Annotated[list[str], Field(min_length=1)]


class UpdateOperation(_OfRecord):
    """Update a record: `data` is merged per key, null clears."""

    op: Literal["update"]
    title: str | None = None
    data: JsonObject | None = None
    relations: RelationsInput | None = None


class DeleteOperation(_OfRecord):
    """Put a record into the trash."""

    op: Literal["delete"]


class ArchiveOperation(_OfRecord):
    """Archive a record."""

    op: Literal["archive"]


class RestoreOperation(_OfRecord):
    """Unarchive a record."""

    op: Literal["restore"]


BatchOperation = TypeAliasType(
    "BatchOperation",
    Annotated[
        CreateOperation
        | UpsertOperation
        | UpdateOperation
        | DeleteOperation
        | ArchiveOperation
        | RestoreOperation,
        Field(discriminator="op", description="One operation of a batch, by what it does."),
    ],
)


class RecordBatch(Input):
    """Body of a batch: all operations are applied, or none."""

    operations: Annotated[list[BatchOperation], Field(min_length=1, max_length=MAX_OPERATIONS)]


class Sort(Input):
    """One key of an order; text is compared by its first characters.

    Records that are equal in all sorts are ordered by id, in the direction of the last sort.
    """

    field: str
    direction: Literal["asc", "desc"] = "asc"
    nulls: Literal["first", "last"] = "last"


def _listed(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class GroupBy(Input):
    """One level of groups; dates are grouped by the period they lie in, by day unless it says so.

    A record whose field holds several values is in the group of each of them.
    """

    field: str
    granularity: Literal["day", "week", "month", "quarter", "year"] | None = None
    direction: Literal["asc", "desc"] = "asc"


GroupLevels = TypeAliasType(
    "GroupLevels", Annotated[list[GroupBy], Field(min_length=1, max_length=2)]
)


class Aggregation(Input):
    """One aggregate of all matching records; `as` names it in the answer, `<op>_<field>` unless
    given. Only `count` needs no field.
    """

    op: Annotated[Aggregate, Field(strict=False)]
    field: str | None = None
    name: Annotated[Key | None, Field(alias="as")] = None


class ColorRule(Input):
    """Records that pass the filter have the color; the options of fields have the same colors."""

    filter: Annotated[JsonObject, documented_as("Filter")]
    color: Annotated[str, Field(min_length=1, max_length=32)]


ColorRules = Annotated[list[ColorRule], Field(max_length=MAX_COLOR_RULES)]


class RecordQuery(Input):
    """Body of query records.

    `filter` is a tree of `{and: […]}`, `{or: […]}`, `{not: …}` and leaves
    `{field, op, value, timezone?}`. `fields` keeps only those keys in the records. `limit` above
    the maximum is lowered to it. `timezone` (IANA) is where days begin unless a leaf says so.
    `groupBy` is one level of groups or a list of two. `aggregates` are of all matching records, and
    of each group. A record has the color of the first rule of `colors` that it passes. The filter
    of the view `viewId` holds too; its other settings apply where the
    query has none.
    """

    filter: Annotated[JsonObject, documented_as("Filter")] | None = None
    sorts: Annotated[list[Sort], Field(max_length=MAX_SORTS)] | None = None
    search: Annotated[str, Field(max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1)] = DEFAULT_QUERY_LIMIT
    cursor: str | None = None
    fields: Annotated[list[str], Field(max_length=500)] | None = None
    timezone: str | None = None
    include_archived: bool = False
    view_id: InputId | None = None
    group_by: (
        Annotated[GroupLevels, BeforeValidator(_listed), documented_as("GroupBy", "GroupLevels")]
        | None
    ) = None
    aggregates: Annotated[list[Aggregation], Field(max_length=MAX_AGGREGATES)] | None = None
    colors: ColorRules | None = None


class RelatedRecord(Shape):
    """A related record."""

    id: Id
    title: str
    database_id: Id


_SYSTEM: JsonObject = {
    "type": "object",
    "additionalProperties": {"type": ["string", "integer", "null"]},
}


class RecordDetail(Shape):
    """A record. `data` holds the values that are set; `system` those the platform writes."""

    id: Id
    workspace_id: Id
    database_id: Id
    content_surface_id: Id | None
    title: str
    data: JsonObject
    relations: Relations
    computed: JsonObject
    system: Annotated[JsonObject, WithJsonSchema(_SYSTEM)]
    related: dict[str, list[RelatedRecord]]
    archived: bool
    created_by_user_id: Id | None
    updated_by_user_id: Id | None
    created_at: Moment
    updated_at: Moment

    def to_json(self) -> JsonObject:
        """The record as expressions read it: each key is there, and null without a value."""
        return {**_WITHOUT_VALUES, **self.model_dump(mode="json", by_alias=True)}


_WITHOUT_VALUES = {"contentSurfaceId": None, "createdByUserId": None, "updatedByUserId": None}


class RecordList(Listed):
    records: list[RecordDetail]


class RecordGroup(Shape):
    """Records with the same value in the grouped field: `value` as records show it, `key` as text.

    A group of dates has the first day of its period as value. Records whose field is empty are in
    the group with the value null and the key "". `groups` are the groups of the second level.
    """

    key: str
    value: Any
    count: int
    aggregates: JsonObject
    groups: list["RecordGroup"] | None = None


class QueryResult(Shape):
    """One page of records; groups and aggregates are of all records, if asked for.

    `groupsTruncated` says that not all groups are shown. `colors` has the color of each record
    that passes a rule, by its id.
    """

    records: list[RecordDetail]
    cursor: Nullable[str]
    groups: list[RecordGroup] | None = None
    groups_truncated: bool | None = None
    aggregates: JsonObject | None = None
    colors: dict[str, str] | None = None


class BatchResult(Shape):
    """The records in the order of the operations, a deleted one as it was.

    `updated` counts every other operation on an existing record, also one without a change.
    """

    records: list[RecordDetail]
    created: int
    updated: int
    deleted: int
