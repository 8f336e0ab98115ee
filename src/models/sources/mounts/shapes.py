"""Mounts on the wire (decisions C13, C18)."""

from typing import Annotated

from models.content.items.shapes import ItemDetail
from models.core.base import (
    EXAMPLE_ID,
    Id,
    Input,
    InputId,
    JsonObject,
    Label,
    Moment,
    Nullable,
    Shape,
    example,
)
from models.core.documented import documented_as
from models.sources.external_resources.rules.resources import MountStatus, ProviderResource
from models.sources.provider_calls.shapes import EXAMPLE_RESOURCE


class CreateMount(Input):
    """`config` of an item of the kind external_resource."""

    resource: ProviderResource
    connection_id: InputId | None = None
    recursive: bool = False


class MountResource(Input):
    """Body of mount: a recursive mount holds everything below the resource, too."""

    model_config = example({"connectionId": EXAMPLE_ID, "resource": EXAMPLE_RESOURCE})

    connection_id: InputId
    resource: ProviderResource
    recursive: bool = False
    parent_item_id: InputId | None = None
    title: Label | None = None


class MountDetail(Shape):
    """A mounted resource; without `connectionId` it is a link.

    A `stale` one is not shown by its provider any more, and stays as it was; `error` says why the
    provider could not be asked. `entries` counts what a recursive mount holds so far; a
    `truncated` one holds as much as a mount may. `rootMountId` is the recursive mount that an
    entry belongs to.
    """

    id: Id
    workspace_id: Id
    item_id: Id
    connection_id: Id | None
    root_mount_id: Id | None
    resource: Annotated[JsonObject, documented_as("ProviderResource")]
    recursive: bool
    status: MountStatus
    syncing: bool = False
    entries: int
    truncated: bool
    error: str | None
    vanished_at: Moment | None
    last_synced_at: Moment | None
    next_run_at: Moment | None
    created_at: Moment
    updated_at: Moment


class MountedResource(Shape):
    """A resource with its place in the tree."""

    resource: Annotated[JsonObject, documented_as("ProviderResource")]
    item: ItemDetail
    mount: MountDetail


class MountList(Shape):
    mounts: list[MountDetail]
    cursor: Nullable[str]
