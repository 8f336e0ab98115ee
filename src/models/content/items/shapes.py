"""Items on the wire, and the type of an item's row.

See interface.md#item, interface.md#request-bodies.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

from pydantic import BeforeValidator, Field, WithJsonSchema

from models.content.items.rules import AccessMode, ItemKind, metadata_problem
from models.core.base import (
    Color,
    Icon,
    Id,
    Input,
    InputId,
    JsonObject,
    Label,
    Moment,
    Nullable,
    Order,
    Shape,
)
from models.core.pagination import Listed
from models.core.problems import refused_for
from runtime.ids import parse_id

Metadata = Annotated[JsonObject, refused_for(metadata_problem)]

ROOT = "root"


def _parent(value: object) -> object:
    if not isinstance(value, str) or value == ROOT:
        return value
    parsed = parse_id(value)
    if parsed is None:
        raise ValueError(f"A parent is the id of an item, or {ROOT}.")
    return parsed


ParentFilter = Annotated[
    Id | Literal["root"],
    BeforeValidator(_parent),
    WithJsonSchema({"type": "string", "description": "The id of an item, or `root`."}),
]
"""The item whose children a list shows; `root` has the items without a parent."""


class UpdateItem(Input):
    """Body of update item: omitted keys stay; null clears icon and color.

    `metadata` is replaced as a whole. `accessMode` needs manage access.
    """

    title: Annotated[Label, Field(default="")]
    icon: Icon | None = None
    color: Color | None = None
    order: Annotated[Order, Field(default=0.0)]
    access_mode: Annotated[AccessMode, Field(default=AccessMode.OPEN, strict=False)]
    metadata: Annotated[Metadata, Field(default_factory=dict)]


class MoveItem(Input):
    """Body of move item: null is the root; without `order` the item becomes the last there."""

    parent_item_id: InputId | None
    order: Order | None = None


class ItemDetail(Shape):
    """One item; `targetId` names the resource behind it."""

    id: Id
    workspace_id: Id
    parent_item_id: Nullable[Id]
    kind: ItemKind
    target_id: Nullable[Id]
    title: str
    icon: Nullable[str]
    color: Nullable[str]
    order: float
    archived: bool
    access_mode: AccessMode
    metadata: JsonObject
    created_at: Moment
    updated_at: Moment


class ItemList(Listed):
    items: list[ItemDetail]


class ItemRow(Protocol):
    """An item; a class of SQLModel cannot have an attribute named `metadata`."""

    id: Id
    workspace_id: Id
    parent_item_id: Id | None
    kind: str
    target_id: Id | None
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
    deleted_with: Id | None
