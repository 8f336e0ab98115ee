"""Copying an item with what is below it, and what stands behind each, kind by kind."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import sqlalchemy as sa

from models.automation.actions.store import copy_action
from models.automation.automations.commands import create_automation
from models.automation.automations.queries import detail as automation_detail
from models.automation.automations.shapes import CreateAutomation
from models.content.files.commands import copy_file
from models.content.grants import copy_grants
from models.content.items import commands as item_commands
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import find_item, get_item, item_detail, items_below, target_of
from models.content.items.rules import ItemKind, copy_stem, copy_title
from models.content.items.shapes import ItemDetail, ItemRow
from models.content.surfaces.commands import copy_surface
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.keys import share_field_keys
from models.core.problems import read_part
from models.data.database_copies.commands import DuplicateDatabase, accept_copy, copy_outcome
from models.data.forms.commands import copy_form
from models.data.views.commands import create_item_view
from models.data.views.queries import view_definition
from models.sources.data_sources.commands import copy_data_source
from models.sources.mounts.commands import copy_mount
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, UnsupportedError
from runtime.ids import new_id

MAX_COPIES = 500

WITH_RECORDS = DuplicateDatabase.model_validate({"includeRecords": True})


async def duplicate_item(
    work: UnitOfWork, actor: Actor, keys: KeyRing, item_id: Id, copy_id: Id
) -> ItemDetail | None:
    """A copy of an item beside it, with those items below it that the actor sees.

    Access mode and grants are copied too. None for a database, which a job copies with its records
    under the id `copy_id`: ask `copied_item`. Raises what
    `check_parent` raises, `DeniedError` without the write scope of a kind that is copied,
    `UnsupportedError` for a database below and for more than 500 items, and `ConflictError` for
    an item whose target refers to something that is gone.
    """
    item = await find_item(work, actor.workspace_id, item_id)
    if item.kind == ItemKind.DATABASE:
        await accept_copy(work, actor, target_of(item), copy_id, WITH_RECORDS)
        return None
    await item_commands.check_parent(work, actor, item.parent_item_id)
    # What is read here, and copied, names fields.
    await share_field_keys(work, actor.workspace_id)
    rows = await _visible_below(work, actor, item_id)
    item_commands.check_scopes(actor, {row.kind for row in rows})
    if any(row.kind == ItemKind.DATABASE for row in rows):
        raise UnsupportedError("The item contains a database. Duplicate databases separately.")
    title = await _free_title(work, actor, item)
    copies: dict[Id, Id] = {}
    for row in rows:
        if row.id == item_id:
            request = CopyRequest(work, actor, keys, row, title, row.parent_item_id)
        elif row.parent_item_id in copies:
            request = CopyRequest(work, actor, keys, row, row.title, copies[row.parent_item_id])
        else:
            continue
        copies[row.id] = await _copy(request)
    await _copy_own_columns(work, actor, item_id, copies)
    return item_detail(await find_item(work, actor.workspace_id, copies[item_id]))


async def copied_item(
    work: UnitOfWork, actor: Actor, copy_id: Id, *, last: bool
) -> ItemDetail | None:
    """The item of a copied database when the copy is complete, None while it is not.

    Raises what `copy_outcome` raises.
    """
    made = await copy_outcome(work, actor, copy_id, last=last)
    return None if made is None else await get_item(work, actor.workspace_id, made.item_id)


async def _visible_below(work: UnitOfWork, actor: Actor, item_id: Id) -> Sequence[ItemRow]:
    """The item and what the actor sees below it, from the top down."""
    rows = await items_below(work, actor, item_id, MAX_COPIES + 1)
    if len(rows) > MAX_COPIES:
        raise UnsupportedError(f"You can duplicate up to {MAX_COPIES} items at once.")
    return rows


async def _free_title(work: UnitOfWork, actor: Actor, found: ItemRow) -> str:
    rows = await work.rows(
        live_items(actor.workspace_id, ITEM.title).where(
            ITEM.parent_item_id.is_not_distinct_from(found.parent_item_id),
            ITEM.title.startswith(copy_stem(found.title), autoescape=True),
        )
    )
    return copy_title(found.title, {row.title for row in rows})


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
        return await item_commands.create_item_for(
            self.work,
            self.actor,
            ItemKind(self.source.kind),
            target_id,
            self.title,
            parent_item_id=self.parent_item_id,
        )


async def _copy(request: CopyRequest) -> Id:
    try:
        return await COPIERS[ItemKind(request.source.kind)](request)
    except NotFoundError as error:
        raise ConflictError(
            f"Failed to duplicate the item {request.source.id}. {error.message}"
        ) from error


async def _copy_own_columns(
    work: UnitOfWork, actor: Actor, root_id: Id, made: Mapping[Id, Id]
) -> None:
    """Copy the columns and grants of the items; those below the root keep their order."""
    copies = _pairs(made)
    await item_commands.copy_appearance(work, actor, root_id, copies)
    await copy_grants(work, actor, copies)


def _pairs(made: Mapping[Id, Id]) -> sa.FromClause:
    columns = (
        sa.literal(list(made), sa.ARRAY(sa.Uuid)),
        sa.literal(list(made.values()), sa.ARRAY(sa.Uuid)),
    )
    return sa.func.unnest(*columns).table_valued("old", "new").render_derived()


Copier = Callable[[CopyRequest], Awaitable[Id]]
"""Makes the copy; gives the id of the new item. The commands that create a kind check what the
actor may do. A copy that could run by itself is disabled.
"""


async def _folder(request: CopyRequest) -> Id:
    return await request.create_item(None)


def _of_item(
    copy: Callable[[UnitOfWork, Actor, Id, Id], Awaitable[Id]],
) -> Copier:
    """For what belongs to its item: the item comes first."""

    async def copier(request: CopyRequest) -> Id:
        item_id = await request.create_item(None)
        target_id = await copy(request.work, request.actor, request.target_id, item_id)
        await item_commands.change_item(
            request.work, request.actor, item_id, {"target_id": target_id}
        )
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
