"""Databases and fields on the wire (interface, Database detail, Field; decisions C17)."""

from typing import Annotated, Any

from pydantic import Field

from models.base import Id, Input, InputId, JsonObject, Label, Moment, Shape
from models.databases.rules.kinds import FieldKind
from models.databases.rules.layout import (
    ContentPosition,
    PageWidth,
    PropertyDensity,
    RelationViewPosition,
)
from models.keys import Key

MAX_FIELDS = 500
MAX_OPTIONS = 1_000

Icon = Annotated[str, Field(min_length=1, max_length=100)]
Color = Annotated[str, Field(min_length=1, max_length=32)]
Order = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]


class CreateOption(Input):
    """One choice; its key is derived from the name unless given."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    key: Key | None = None
    color: Color | None = None


class CreateField(Input):
    """A field inside a body. `defaultValue` is the text of a value, or the value itself."""

    label: Label
    kind: Annotated[FieldKind, Field(strict=False)]
    key: Key | None = None
    required: bool = False
    default_value: Any = None
    options: Annotated[list[CreateOption], Field(max_length=MAX_OPTIONS)] | None = None
    settings: JsonObject | None = None
    order: Order | None = None


class CreateDatabase(Input):
    """Body of create database. Without a field of the key `title`, one is put first."""

    label: Label
    key: Key | None = None
    description: Annotated[str, Field(max_length=4_000)] | None = None
    icon: Icon | None = None
    parent_item_id: InputId | None = None
    order: Order | None = None
    settings: JsonObject | None = None
    fields: Annotated[list[CreateField], Field(max_length=MAX_FIELDS)] | None = None
    views: Annotated[list[JsonObject], Field(max_length=200)] | None = None


class OptionShape(Shape):
    id: str
    key: str
    name: str
    color: str
    order: float


class FieldShape(Shape):
    """One field; `defaultValue` is the text of the value a new record gets."""

    id: Id
    workspace_id: Id
    database_id: Id
    key: str
    label: str
    kind: FieldKind
    required: bool
    default_value: str | None
    options: list[OptionShape]
    settings: JsonObject
    order: float
    created_at: Moment
    updated_at: Moment


class LayoutSection(Shape):
    id: str
    label: str
    field_keys: list[str]


class RelationViewLayout(Shape):
    default_view_id: str | None = None
    position: RelationViewPosition
    collapsed: bool


class RecordLayout(Shape):
    """How a record page is laid out."""

    version: int
    page_width: PageWidth
    property_columns: int
    property_density: PropertyDensity
    property_order: list[str]
    hidden_field_keys: list[str]
    sections: list[LayoutSection]
    content_position: ContentPosition
    show_comments: bool
    show_activity: bool
    pinned_field_keys: list[str]
    auto_add_new_fields: bool
    collapsed_section_ids: list[str]
    relation_views: dict[str, RelationViewLayout]
    show_references: bool


class DatabaseDetail(Shape):
    """A database with its fields and views; `order`, `icon` and `archived` are its item's."""

    id: Id
    workspace_id: Id
    item_id: Id
    parent_item_id: Id | None
    key: str
    label: str
    description: str | None
    icon: str | None
    order: float
    settings: JsonObject
    record_layout: RecordLayout
    archived: bool
    fields: list[FieldShape]
    views: list[JsonObject]
    created_at: Moment
    updated_at: Moment


class DatabaseList(Shape):
    databases: list[DatabaseDetail]
    cursor: str | None
