"""Databases on the wire, with the options of their record pages."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from models.core.base import (
    Icon,
    Id,
    Input,
    InputId,
    JsonObject,
    Label,
    Moment,
    Order,
    Shape,
    example,
)
from models.core.keys import Key
from models.core.pagination import Listed
from models.core.values import MomentText
from models.data.fields.rules.fields import FieldKind
from models.data.fields.shapes import (
    MAX_FIELDS,
    MAX_OPTIONS,
    CreateField,
    CreateOption,
    FieldShape,
)
from models.data.views.shapes import MAX_VIEWS, CreateView, ViewShape


class PageWidth(StrEnum):
    NARROW = "narrow"
    STANDARD = "standard"
    WIDE = "wide"
    FULL = "full"


class PropertyDensity(StrEnum):
    COMPACT = "compact"
    COMFORTABLE = "comfortable"
    SPACIOUS = "spacious"


class ContentPosition(StrEnum):
    BELOW = "below"
    ABOVE = "above"
    SIDE = "side"
    HIDDEN = "hidden"


class RelationViewPosition(StrEnum):
    SECTION = "section"
    TAB = "tab"
    SIDE = "side"
    HIDDEN = "hidden"


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
    views: Annotated[list[CreateView], Field(max_length=MAX_VIEWS - 1)] | None = None


class RenameField(Input):
    """Body of rename field: its new key.

    With `rewrite` every definition that names the field by its key is changed along; without it the
    call is refused while there is one.
    """

    model_config = example({"key": "unit_price", "rewrite": True})

    key: Key
    rewrite: bool = False


class ConvertField(Input):
    """Body of convert field. `options` are all options; without them texts become options.

    With `preview` nothing changes. `expectedUpdatedAt` is the field's `updatedAt` last read.
    """

    kind: Annotated[FieldKind, Field(strict=False)]
    settings: JsonObject | None = None
    options: Annotated[list[CreateOption], Field(max_length=MAX_OPTIONS)] | None = None
    preview: bool = False
    expected_updated_at: MomentText | None = None


FieldKeys = Annotated[list[str], Field(max_length=MAX_FIELDS)]


class ChangeSection(Input):
    """A group of properties on a record's page."""

    id: Annotated[str, Field(min_length=1, max_length=100)]
    label: Label
    field_keys: Annotated[FieldKeys, Field(default_factory=list)]


class ChangeRelationView(Input):
    """The display of the records a relation points at."""

    default_view_id: InputId | None = None
    position: Annotated[RelationViewPosition, Field(strict=False)] = RelationViewPosition.SECTION
    collapsed: bool = False


class ChangeRecordLayout(Input):
    """Parts of a layout: the ones a body names are replaced, all others stay.

    `version` is the one last read: a layout that was changed since is left unchanged.
    """

    version: int | None = None
    page_width: Annotated[PageWidth, Field(strict=False)] | None = None
    property_columns: Annotated[int, Field(ge=1, le=4)] | None = None
    property_density: Annotated[PropertyDensity, Field(strict=False)] | None = None
    property_order: FieldKeys | None = None
    hidden_field_keys: FieldKeys | None = None
    sections: Annotated[list[ChangeSection], Field(max_length=100)] | None = None
    content_position: Annotated[ContentPosition, Field(strict=False)] | None = None
    show_comments: bool | None = None
    show_activity: bool | None = None
    pinned_field_keys: FieldKeys | None = None
    auto_add_new_fields: bool | None = None
    collapsed_section_ids: Annotated[list[str], Field(max_length=100)] | None = None
    relation_views: (
        Annotated[dict[str, ChangeRelationView], Field(max_length=MAX_FIELDS)] | None
    ) = None
    show_references: bool | None = None


class UpdateDatabase(Input):
    """Body of update database; null clears a description or an icon."""

    label: Label | None = None
    description: Annotated[str, Field(max_length=4_000)] | None = None
    icon: Icon | None = None
    order: Order | None = None
    settings: JsonObject | None = None
    record_layout: ChangeRecordLayout | None = None
    archived: bool | None = None


class ConversionSample(Shape):
    """One record's value before and after; null where it is lost."""

    record_id: Id
    from_: Annotated[Any, Field(alias="from")]
    to: Any


class ConversionPreview(Shape):
    """The outcome of converting a field: `convertible` and `lost` of the `examined` values.

    `total` counts the records that hold a value.
    """

    field: FieldShape
    total: int
    examined: int
    convertible: int
    lost: int
    samples: list[ConversionSample]


class ConvertedField(Shape):
    """The converted field, and the outcome for its values."""

    field: FieldShape
    converted: int
    lost: int


class LayoutSection(Shape):
    id: str
    label: str
    field_keys: list[str]


class RelationViewLayout(Shape):
    default_view_id: str | None = None
    position: RelationViewPosition
    collapsed: bool


class RecordLayout(Shape):
    """The layout of a record page."""

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
    views: list[ViewShape]
    created_at: Moment
    updated_at: Moment


class DatabaseList(Listed):
    databases: list[DatabaseDetail]
