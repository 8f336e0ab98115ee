"""Items on the wire, and the type of an item's row.

See interface.md#item, interface.md#request-bodies.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

from pydantic import BeforeValidator, Field, WithJsonSchema

from models.content.items.rules import AccessMode, ItemKind, metadata_problem
from models.core import base as core_base
from models.core.pagination import Listed
from models.core.problems import refused_for
from runtime.ids import parse_id

Metadata = Annotated[core_base.JsonObject, refused_for(metadata_problem)]

ROOT = "root"


def _parent(value: object) -> object:
    if not isinstance(value, str) or value == ROOT:
        return value
    parsed = parse_id(value)
    if parsed is None:
        raise ValueError(f"A parent is the id of an item, or {ROOT}.")
    return parsed


ParentFilter = Annotated[
    core_base.Id | Literal["root"],
    BeforeValidator(_parent),
    WithJsonSchema({"type": "string", "description": "The id of an item, or `root`."}),
]
"""The item whose children a list shows; `root` has the items without a parent."""


class UpdateItem(core_base.Input):
    """Body of update item: omitted keys stay; null clears icon and color.

    `metadata` is replaced as a whole. `accessMode` needs manage access.
    """

    title: Annotated[core_base.Label, Field(default="")]
    icon: core_base.Icon | None = None
    color: core_base.Color | None = None
    order: Annotated[core_base.Order, Field(default=0.0)]
    access_mode: Annotated[AccessMode, Field(default=AccessMode.OPEN, strict=False)]
    metadata: Annotated[Metadata, Field(default_factory=dict)]


class MoveItem(core_base.Input):
    """Body of move item: null is the root; without `order` the item becomes the last there."""

    parent_item_id: core_base.InputId | None
    order: core_base.Order | None = None


class ItemDetail(core_base.Shape):
    """One item; `targetId` names the resource behind it."""

    id: core_base.Id
    workspace_id: core_base.Id
    parent_item_id: core_base.Nullable[core_base.Id]
    kind: ItemKind
    target_id: core_base.Nullable[core_base.Id]
    title: str
    icon: core_base.Nullable[str]
    color: core_base.Nullable[str]
    order: float
    archived: bool
    access_mode: AccessMode
    metadata: core_base.JsonObject
    created_at: core_base.Moment
    updated_at: core_base.Moment


class ItemList(Listed):
    items: list[ItemDetail]


class ItemRow(Protocol):
    """An item; a class of SQLModel cannot have an attribute named `metadata`."""

    id: core_base.Id
    workspace_id: core_base.Id
    parent_item_id: core_base.Id | None
    kind: str
    target_id: core_base.Id | None
    title: str
    icon: str | None
    color: str | None
    position: float
    archived: bool
    access_mode: str
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    deleted_with: core_base.Id | None
