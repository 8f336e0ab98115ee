"""Copying what stands behind an item, kind by kind.

The commands that create a kind check what the actor may do. A copy that could run by itself is
disabled.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from models.automation.actions.commands import copy_action
from models.automation.automations.commands import create_automation
from models.automation.automations.queries import detail as automation_detail
from models.automation.automations.shapes import CreateAutomation
from models.content.files.commands import copy_file
from models.content.items.commands import change_item, create_item_for
from models.content.items.queries import target_of
from models.content.items.rows import ItemRow
from models.content.items.rules import ItemKind
from models.content.surfaces.commands.surfaces import copy_surface
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.inputs import read_part
from models.data.forms.commands import copy_form
from models.data.views.commands.views import create_item_view
from models.data.views.queries import view_definition
from models.sources.data_sources.commands import copy_data_source
from models.sources.mounts.commands.mounts import copy_mount
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.ids import new_id


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """One item to copy: its row, the title of the copy and the parent it gets."""

    work: UnitOfWork
    actor: Actor
    keys: KeyRing
    source: ItemRow
    title: str
    parent_item_id: Id | None

    @property
    def target_id(self) -> Id:
        """The id of what is copied."""
        return target_of(self.source)

    async def create_item(self, target_id: Id | None) -> Id:
        """The item of the copy, for kinds whose own command makes none."""
        return await create_item_for(
            self.work,
            self.actor,
            ItemKind(self.source.kind),
            target_id,
            self.title,
            parent_item_id=self.parent_item_id,
        )


Copier = Callable[[CopyRequest], Awaitable[Id]]
"""Makes the copy; gives the id of the new item."""


async def _folder(request: CopyRequest) -> Id:
    return await request.create_item(None)


def _of_item(
    copy: Callable[[UnitOfWork, Actor, Id, Id], Awaitable[Id]],
) -> Copier:
    """For what belongs to its item: the item comes first."""

    async def copier(request: CopyRequest) -> Id:
        item_id = await request.create_item(None)
        target_id = await copy(request.work, request.actor, request.target_id, item_id)
        await change_item(request.work, request.actor, item_id, {"target_id": target_id})
        return item_id

    return copier


class _Placed(Protocol):
    item_id: Id


def _with_item(
    copy: Callable[[UnitOfWork, Actor, Id, str, Id | None], Awaitable[_Placed]],
) -> Copier:
    """For what makes its item itself."""

    async def copier(request: CopyRequest) -> Id:
        work, actor = request.work, request.actor
        made = await copy(work, actor, request.target_id, request.title, request.parent_item_id)
        return made.item_id

    return copier


async def _view(request: CopyRequest) -> Id:
    work, actor = request.work, request.actor
    found = await view_definition(work, actor.workspace_id, request.target_id)
    config: JsonObject = {
        "databaseId": str(found.database_id),
        "kind": found.kind,
        "manifest": found.manifest,
    }
    view_id = new_id()
    item_id = await request.create_item(view_id)
    await create_item_view(work, actor, item_id, request.title, config, view_id=view_id)
    return item_id


async def _file(request: CopyRequest) -> Id:
    """A second file of the same bytes."""
    return await request.create_item(
        await copy_file(request.work, request.actor, request.target_id)
    )


async def _automation(request: CopyRequest) -> Id:
    """A draft of what the current version does, with a webhook of its own."""
    work, actor, keys = request.work, request.actor, request.keys
    found = await automation_detail(work, actor, keys, request.target_id)
    values: JsonObject = {
        "label": request.title,
        "triggerConfig": found.trigger_config,
        "graph": found.graph,
    }
    if request.parent_item_id is not None:
        values["parentItemId"] = str(request.parent_item_id)
    body = read_part(CreateAutomation, values, "automation")
    return (await create_automation(work, actor, keys, body)).item_id


COPIERS: Mapping[ItemKind, Copier] = MappingProxyType(
    {
        ItemKind.FOLDER: _folder,
        ItemKind.PAGE: _of_item(copy_surface),
        ItemKind.NOTE: _of_item(copy_surface),
        ItemKind.DASHBOARD: _of_item(copy_surface),
        ItemKind.CANVAS: _of_item(copy_surface),
        ItemKind.VIEW: _view,
        ItemKind.FORM: _of_item(copy_form),
        ItemKind.FILE: _file,
        ItemKind.DATA_SOURCE: _with_item(copy_data_source),
        ItemKind.ACTION: _with_item(copy_action),
        ItemKind.AUTOMATION: _automation,
        ItemKind.EXTERNAL_RESOURCE: _with_item(copy_mount),
    }
)
"""A database is not among them: its copy is a job."""
