"""Items together with what stands behind them (interface.md#targets-of-items)."""

from typing import Annotated

from pydantic import Field

from models.automation.actions.rules import ActionDetail
from models.automation.automations.shapes import AutomationDetail
from models.content.files.queries import StoredFile
from models.content.items.rules import AccessMode, ItemKind
from models.content.items.shapes import ItemDetail, Metadata
from models.content.surfaces.shapes import SurfaceDetail
from models.core.base import Color, Icon, Input, InputId, JsonObject, Label, Order, Shape
from models.core.openapi import documented_as
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.shapes import FieldShape
from models.data.forms.shapes import FormDetail
from models.data.views.shapes import ViewShape
from models.sources.data_source_runs.overviews import DataSourceDetail
from models.sources.mounts.queries import MountDetail

TargetDetail = (
    SurfaceDetail
    | ViewShape
    | FormDetail
    | DatabaseDetail
    | StoredFile
    | DataSourceDetail
    | ActionDetail
    | AutomationDetail
    | MountDetail
)


class CreateItem(Input):
    """Body of create item; `config` depends on its kind.

    `content` is that of pages, notes, canvases and dashboards: `{settings?, blocks?}`. `config` is
    for a view `{databaseId, kind?, manifest?}`, for a form `{databaseId, fields?, …}`, for a file
    `{fileId}`, for an external resource `{resource, connectionId?, recursive?}`, and for a
    database, a data source, an action or an automation the body that creates it, without label and
    place. A folder has neither.
    """

    kind: Annotated[ItemKind, Field(strict=False)]
    title: Label
    parent_item_id: InputId | None = None
    icon: Icon | None = None
    color: Color | None = None
    order: Order | None = None
    access_mode: Annotated[AccessMode, Field(strict=False)] = AccessMode.OPEN
    metadata: Annotated[Metadata, Field(default_factory=dict)]
    workspace_id: InputId | None = None
    content: Annotated[JsonObject, documented_as("SurfaceContent")] | None = None
    config: JsonObject | None = None


class FileItemConfig(Input):
    """`config` of an item of the kind file: a file that was uploaded and has no item yet."""

    file_id: InputId


class PlacedTarget(Shape):
    """An item and its target; a folder has no target."""

    item: ItemDetail
    target: TargetDetail | None


class DeletedFields(Shape):
    fields: list[FieldShape]


class DeletedItem(Shape):
    """An item as it is in the trash; its `database` or `file` if it is one."""

    item: ItemDetail
    database: DeletedFields | None
    file: StoredFile | None
