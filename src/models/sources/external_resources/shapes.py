"""Mounts on the wire (decisions C13)."""

from typing import Annotated

from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape
from models.core.documented import documented_as
from models.sources.external_resources.rules.resources import MountStatus, ProviderResource


class CreateMount(Input):
    """`config` of an item of the kind external_resource."""

    resource: ProviderResource
    connection_id: InputId | None = None
    recursive: bool = False


class MountDetail(Shape):
    """A mounted resource; without `connectionId` it is a link."""

    id: Id
    workspace_id: Id
    item_id: Id
    connection_id: Id | None
    resource: Annotated[JsonObject, documented_as("ProviderResource")]
    recursive: bool
    status: MountStatus
    last_synced_at: Moment | None
    created_at: Moment
    updated_at: Moment
