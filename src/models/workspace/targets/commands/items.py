"""Creating, changing, deleting and copying items together with what stands behind them."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from models.automation.automations.commands import set_label as set_automation_label
from models.content.files.queries import stored_file
from models.content.grants.commands import grant_manage
from models.content.items.commands import change_item, check_parent, check_scopes, trash_item
from models.content.items.queries import find_item, item_detail, placement, target_of
from models.content.items.rules import AccessMode, ItemKind
from models.content.items.shapes import ItemDetail, UpdateItem
from models.core.access.placement import level_on
from models.core.access.rules import MANAGERS, Actor, Level
from models.core.base import Id, JsonObject
from models.data.databases.commands.databases import set_label as set_database_label
from models.data.databases.queries import get_database
from models.data.views.commands.views import set_label as set_view_label
from models.sources.data_sources.schedules import data_source_renamed
from models.workspace.targets.commands.factories import FACTORIES, WITH_CONTENT, Creation
from models.workspace.targets.shapes import CreateItem, DeletedFields, DeletedItem, PlacedTarget
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError

SetLabel = Callable[[UnitOfWork, Id, Id, str], Awaitable[None]]
"""Takes a workspace, a target of it and the new label."""

_SET_LABEL: dict[ItemKind, SetLabel] = {
    ItemKind.AUTOMATION: set_automation_label,
    ItemKind.DATA_SOURCE: data_source_renamed,
    ItemKind.DATABASE: set_database_label,
    ItemKind.VIEW: set_view_label,
}
"""The kinds whose targets have the title of their item as their label."""


async def create_item(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: CreateItem
) -> PlacedTarget:
    """A new item with its target.

    Whoever creates a restricted item gets manage access to it. Raises `DeniedError` without the
    kind's write scope, `NotFoundError` for what the body names and the actor does not see,
    `ValidationError` at `content` or below `config`, `ConflictError` for a key in use.
    """
    check_scopes(actor, {body.kind.value})
    if body.workspace_id not in {None, actor.workspace_id}:
        raise NotFoundError("workspace")
    await check_parent(work, actor, body.parent_item_id)
    unused = "config" if body.kind in WITH_CONTENT else "content"
    if body.kind is ItemKind.FOLDER and body.config is not None:
        unused = "config"
    if getattr(body, unused) is not None:
        raise ValidationError.at(unused, f"An item of the kind {body.kind.value} has none.")
    item_id, target = await FACTORIES[body.kind](Creation(work, actor, keys, body))
    row = await find_item(work, actor.workspace_id, item_id)
    own = _columns(body.model_dump(mode="json", include=_ITEM_FIELDS, exclude_unset=True))
    if own:
        row = await change_item(work, actor, item_id, own)
    if body.access_mode is AccessMode.RESTRICTED:
        await _keep_access(work, actor, item_id)
    return PlacedTarget.model_construct(item=item_detail(row), target=target)


_ITEM_FIELDS = {"icon", "color", "order", "access_mode", "metadata"}


def _columns(given: JsonObject) -> JsonObject:
    """Keys of a body as columns of the item."""
    return {"position" if key == "order" else key: value for key, value in given.items()}


async def update_item(
    work: UnitOfWork,
    actor: Actor,
    item_id: Id,
    body: UpdateItem,
    expected_updated_at: datetime | None = None,
) -> ItemDetail:
    """Change what the body names; a new title is the target's label too.

    Raises `DeniedError` without the kind's write scope, or without manage access when the body
    names the access mode, and what `change_item` raises.
    """
    item = await find_item(work, actor.workspace_id, item_id)
    kind = ItemKind(item.kind)
    check_scopes(actor, {kind.value})
    values = _columns(body.model_dump(mode="json", exclude_unset=True))
    if "access_mode" in values:
        await _check_manages(work, actor, item_id)
    # The target first, as commands that rename the target do: two renames never deadlock.
    if "title" in values and kind in _SET_LABEL:
        await _SET_LABEL[kind](work, actor.workspace_id, target_of(item), values["title"])
    row = await change_item(work, actor, item_id, values, expected_updated_at) if values else item
    if values.get("access_mode") == AccessMode.RESTRICTED.value:
        await _keep_access(work, actor, item_id)
    return item_detail(row)


async def delete_item(work: UnitOfWork, actor: Actor, keys: KeyRing, item_id: Id) -> DeletedItem:
    """Put an item and all below it into the trash for 30 days (interface, Delete item).

    Raises what `trash_item` raises.
    """
    item = await find_item(work, actor.workspace_id, item_id)
    check_scopes(actor, {item.kind})
    fields = file = None
    if item.kind == ItemKind.DATABASE:
        fields = DeletedFields(fields=(await get_database(work, actor, target_of(item))).fields)
    if item.kind == ItemKind.FILE:
        file = await stored_file(work, actor.workspace_id, target_of(item), keys)
    row = await trash_item(work, actor, item_id)
    return DeletedItem(item=item_detail(row), database=fields, file=file)


async def _check_manages(work: UnitOfWork, actor: Actor, item_id: Id) -> None:
    found = await placement(work, [actor.workspace_id], item_id, actor.user_id)
    if found is None:
        raise NotFoundError
    if level_on(found, actor.role) < Level.MANAGE:
        raise DeniedError("Changing the access mode needs manage access to the item.")


async def _keep_access(work: UnitOfWork, actor: Actor, item_id: Id) -> None:
    """Keep access for whoever restricts an item."""
    if actor.role in MANAGERS:
        return
    await grant_manage(work, actor, item_id)
