"""Databases on the wire, with the options of their record pages."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from models.core import base as core_base
from models.core.keys import Key
from models.core.pagination import Listed
from models.core.values import MomentText
from models.data.fields import shapes as field_shapes
from models.data.fields.rules.fields import FieldKind
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


class CreateDatabase(core_base.Input):
    """Body of create database. Without a field of the key `title`, one is put first."""

    label: core_base.Label
    key: Key | None = None
    description: Annotated[str, Field(max_length=4_000)] | None = None
    icon: core_base.Icon | None = None
    parent_item_id: core_base.InputId | None = None
    order: core_base.Order | None = None
    settings: core_base.JsonObject | None = None
    fields: (
        Annotated[list[field_shapes.CreateField], Field(max_length=field_shapes.MAX_FIELDS)] | None
    ) = None
    views: Annotated[list[CreateView], Field(max_length=MAX_VIEWS - 1)] | None = None


class RenameField(core_base.Input):
    """Body of rename field: its new key.

    With `rewrite` every definition that names the field by its key is changed along; without it the
    call is refused while there is one.
    """

    model_config = core_base.example({"key": "unit_price", "rewrite": True})

    key: Key
    rewrite: bool = False


class ConvertField(core_base.Input):
    """Body of convert field. `options` are all options; without them texts become options.

    With `preview` nothing changes. `expectedUpdatedAt` is the field's `updatedAt` last read.
    """

    kind: Annotated[FieldKind, Field(strict=False)]
    settings: core_base.JsonObject | None = None
    options: (
        Annotated[list[field_shapes.CreateOption], Field(max_length=field_shapes.MAX_OPTIONS)]
        | None
    ) = None
    preview: bool = False
    expected_updated_at: MomentText | None = None


FieldKeys = Annotated[list[str], Field(max_length=field_shapes.MAX_FIELDS)]


class ChangeSection(core_base.Input):
    """A group of properties on a record's page."""

    id: Annotated[str, Field(min_length=1, max_length=100)]
    label: core_base.Label
    field_keys: Annotated[FieldKeys, Field(default_factory=list)]


class ChangeRelationView(core_base.Input):
    """The display of the records a relation points at."""

    default_view_id: core_base.InputId | None = None
    position: Annotated[RelationViewPosition, Field(strict=False)] = RelationViewPosition.SECTION
    collapsed: bool = False


class ChangeRecordLayout(core_base.Input):
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
        Annotated[dict[str, ChangeRelationView], Field(max_length=field_shapes.MAX_FIELDS)] | None
    ) = None
    show_references: bool | None = None


class UpdateDatabase(core_base.Input):
    """Body of update database; null clears a description or an icon."""

    label: core_base.Label | None = None
    description: Annotated[str, Field(max_length=4_000)] | None = None
    icon: core_base.Icon | None = None
    order: core_base.Order | None = None
    settings: core_base.JsonObject | None = None
    record_layout: ChangeRecordLayout | None = None
    archived: bool | None = None


class ConversionSample(core_base.Shape):
    """One record's value before and after; null where it is lost."""

    record_id: core_base.Id
    from_: Annotated[Any, Field(alias="from")]
    to: Any


class ConversionPreview(core_base.Shape):
    """The outcome of converting a field: `convertible` and `lost` of the `examined` values.

    `total` counts the records that hold a value.
    """

    field: field_shapes.FieldShape
    total: int
    examined: int
    convertible: int
    lost: int
    samples: list[ConversionSample]


class ConvertedField(core_base.Shape):
    """The converted field, and the outcome for its values."""

    field: field_shapes.FieldShape
    converted: int
    lost: int


class LayoutSection(core_base.Shape):
    id: str
    label: str
    field_keys: list[str]


class RelationViewLayout(core_base.Shape):
    default_view_id: str | None = None
    position: RelationViewPosition
    collapsed: bool


class RecordLayout(core_base.Shape):
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


class DatabaseDetail(core_base.Shape):
    """A database with its fields and views; `order`, `icon` and `archived` are its item's."""

    id: core_base.Id
    workspace_id: core_base.Id
    item_id: core_base.Id
    parent_item_id: core_base.Id | None
    key: str
    label: str
    description: str | None
    icon: str | None
    order: float
    settings: core_base.JsonObject
    record_layout: RecordLayout
    archived: bool
    fields: list[field_shapes.FieldShape]
    views: list[ViewShape]
    created_at: core_base.Moment
    updated_at: core_base.Moment


class DatabaseList(Listed):
    databases: list[DatabaseDetail]
