"""Views on the wire (interface.md#view, interface.md#views)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Shape
from models.core.keys import Key
from models.core.openapi import documented_as
from models.core.pagination import Listed
from models.data.records.shapes import ColorRules
from models.data.views.rules.kinds import ChartType, Placement, ViewKind, ViewScope

MAX_VIEWS = 200
MAX_SHOWN_FIELDS = 500

FieldKey = Annotated[str, Field(min_length=1, max_length=63)]
Order = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]


class ShownField(Input):
    """One column or property; `width` is in pixels."""

    key: FieldKey
    visible: bool = True
    width: Annotated[int, Field(ge=20, le=5_000)] | None = None


class Chart(Input):
    """The content of a chart: `aggregate` of the records for each value of `xFieldKey`.

    `granularity` is the period of an `xFieldKey` with dates, by default the day.
    """

    type: Annotated[ChartType, Field(strict=False)]
    x_field_key: FieldKey | None = None
    granularity: Literal["day", "week", "month", "quarter", "year"] | None = None
    aggregate: Annotated[JsonObject, documented_as("Aggregation")] | None = None


class FormQuestion(Input):
    """One field a form asks for; `visibleIf` is a filter over earlier answers."""

    key: FieldKey
    required: bool = False
    label: Label | None = None
    help: Annotated[str, Field(max_length=2_000)] | None = None
    visible_if: Annotated[JsonObject, documented_as("Filter")] | None = None


class FormLayout(Input):
    title: Annotated[str, Field(max_length=200)] | None = None
    description: Annotated[str, Field(max_length=4_000)] | None = None
    fields: Annotated[list[FormQuestion], Field(min_length=1, max_length=MAX_SHOWN_FIELDS)]
    submit_label: Annotated[str, Field(max_length=100)] | None = None
    confirmation: Annotated[str, Field(max_length=4_000)] | None = None


class Manifest(Input):
    """The content of a view and its display.

    `filter`, `sorts`, `search`, `groupBy`, `aggregates` and `colors` are as in a records query. The
    cards of a board are in the columns of `stackFieldKey`, and are ordered by hand in the number
    field `orderFieldKey`. Declared keys are checked; others are kept for clients that use them.
    """

    model_config = ConfigDict(extra="allow")

    filter: Annotated[JsonObject, documented_as("Filter")] | None = None
    sorts: list[Annotated[JsonObject, documented_as("Sort")]] | None = None
    search: str | None = None
    group_by: Annotated[Any, documented_as("GroupBy", "GroupLevels")] = None
    aggregates: list[Annotated[JsonObject, documented_as("Aggregation")]] | None = None
    fields: Annotated[list[ShownField], Field(max_length=MAX_SHOWN_FIELDS)] | None = None
    stack_field_key: FieldKey | None = None
    order_field_key: FieldKey | None = None
    date_field_key: FieldKey | None = None
    end_date_field_key: FieldKey | None = None
    cover_field_key: FieldKey | None = None
    card_fields: Annotated[list[FieldKey], Field(max_length=MAX_SHOWN_FIELDS)] | None = None
    colors: ColorRules | None = None
    chart: Chart | None = None
    form: FormLayout | None = None


ChosenPlacement = Literal["database", "relation", "dashboard"]
"""Placements a body may name; a standalone view is made by creating an item of the kind view."""


class CreateView(Input):
    """Body of create view; last among its siblings unless `order` says where."""

    label: Label
    key: Key | None = None
    kind: Annotated[ViewKind, Field(strict=False)] = ViewKind.TABLE
    placement: ChosenPlacement = "database"
    manifest: Annotated[Manifest, Field(default_factory=Manifest)]
    relation_field_id: InputId | None = None
    scope: Annotated[ViewScope, Field(strict=False)] = ViewScope.SHARED
    locked: bool = False
    order: Order | None = None


class UpdateView(Input):
    """Body of update view: given keys are replaced, the manifest as a whole."""

    label: Label | None = None
    kind: Annotated[ViewKind, Field(strict=False)] | None = None
    placement: ChosenPlacement | None = None
    manifest: Manifest | None = None
    relation_field_id: InputId | None = None
    scope: Annotated[ViewScope, Field(strict=False)] | None = None
    locked: bool | None = None
    order: Order | None = None


class DuplicateView(Input):
    """Body of duplicate view; without a label it is named as a copy of the original."""

    label: Label | None = None
    scope: Annotated[ViewScope, Field(strict=False)] | None = None


class ItemViewConfig(Input):
    """`config` of an item of the kind view."""

    database_id: InputId
    kind: Annotated[ViewKind, Field(strict=False)] = ViewKind.TABLE
    manifest: Annotated[Manifest, Field(default_factory=Manifest)]


class ViewShape(Shape):
    """A view of a database."""

    id: Id
    workspace_id: Id
    database_id: Id
    key: str
    label: str
    kind: ViewKind
    placement: Placement
    manifest: Annotated[JsonObject, documented_as("Manifest")]
    relation_field_id: Id | None
    owner_user_id: Id | None
    scope: ViewScope
    locked: bool
    order: Annotated[float, Field(validation_alias="position", serialization_alias="order")]
    definition_version: int
    created_at: Moment
    updated_at: Moment


class ViewList(Listed):
    views: list[ViewShape]
