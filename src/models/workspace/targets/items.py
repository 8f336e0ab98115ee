"""Creating, changing and deleting items together with what stands behind them, kind by kind."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from models.automation.actions.rules import CreateAction
from models.automation.actions.store import create_action
from models.automation.automations.commands import create_automation
from models.automation.automations.commands import set_label as set_automation_label
from models.automation.automations.shapes import CreateAutomation
from models.content.files.commands import lock_unplaced
from models.content.files.queries import stored_file
from models.content.files.queries import visible as visible_file
from models.content.grants import grant_manage
from models.content.items import commands
from models.content.items.queries import find_item, item_detail, placement, target_of
from models.content.items.rules import AccessMode, ItemKind
from models.content.items.shapes import ItemDetail, UpdateItem
from models.content.surfaces.commands import create_surface
from models.content.surfaces.queries import detail, find_surface
from models.content.surfaces.rules.contents import SurfaceKind
from models.core.access.rules import MANAGERS, Actor, Level, Scope, level_on
from models.core.base import Id, JsonObject
from models.core.problems import M, problems_within, read_part
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database, get_database
from models.data.databases.store import set_label as set_database_label
from models.data.forms.commands import create_form
from models.data.forms.queries import get_form
from models.data.views.commands import create_item_view
from models.data.views.commands import set_label as set_view_label
from models.data.views.queries import get_view
from models.sources.data_source_runs.overviews import detail as data_source_detail
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.queries import CreateDataSource
from models.sources.data_sources.tables import data_source_renamed
from models.sources.mounts.commands import create_mount
from models.sources.mounts.queries import CreateMount
from models.workspace.targets import shapes
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id

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
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: shapes.CreateItem
) -> shapes.PlacedTarget:
    """A new item with its target.

    The creator of a restricted item gets manage access to it. Raises `DeniedError` without the
    kind's write scope, `NotFoundError` for what the body names and the actor does not see,
    `ValidationError` at `content` or below `config`, `ConflictError` for a key in use.
    """
    commands.check_scopes(actor, {body.kind.value})
    if body.workspace_id not in {None, actor.workspace_id}:
        raise NotFoundError("workspace")
    await commands.check_parent(work, actor, body.parent_item_id)
    unused = "config" if body.kind in WITH_CONTENT else "content"
    if body.kind is ItemKind.FOLDER and body.config is not None:
        unused = "config"
    if getattr(body, unused) is not None:
        raise ValidationError.at(unused, f"Not supported by the kind {body.kind.value}.")
    item_id, target = await FACTORIES[body.kind](Creation(work, actor, keys, body))
    row = await find_item(work, actor.workspace_id, item_id)
    own = _columns(body.model_dump(mode="json", include=_ITEM_FIELDS, exclude_unset=True))
    if own:
        row = await commands.change_item(work, actor, item_id, own)
    if body.access_mode is AccessMode.RESTRICTED:
        await _keep_access(work, actor, item_id)
    return shapes.PlacedTarget.model_construct(item=item_detail(row), target=target)


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
    commands.check_scopes(actor, {kind.value})
    values = _columns(body.model_dump(mode="json", exclude_unset=True))
    if "access_mode" in values:
        await _check_manages(work, actor, item_id)
    # The target first, as commands that rename the target do: two renames never deadlock.
    if "title" in values and kind in _SET_LABEL:
        await _SET_LABEL[kind](work, actor.workspace_id, target_of(item), values["title"])
    row = (
        await commands.change_item(work, actor, item_id, values, expected_updated_at)
        if values
        else item
    )
    if values.get("access_mode") == AccessMode.RESTRICTED.value:
        await _keep_access(work, actor, item_id)
    return item_detail(row)


async def delete_item(
    work: UnitOfWork, actor: Actor, keys: KeyRing, item_id: Id
) -> shapes.DeletedItem:
    """Put an item and all below it into the trash for 30 days (interface.md#trash).

    Raises what `trash_item` raises.
    """
    item = await find_item(work, actor.workspace_id, item_id)
    commands.check_scopes(actor, {item.kind})
    fields = file = None
    if item.kind == ItemKind.DATABASE:
        fields = shapes.DeletedFields(
            fields=(await get_database(work, actor, target_of(item))).fields
        )
    if item.kind == ItemKind.FILE:
        file = await stored_file(work, actor.workspace_id, target_of(item), keys)
    row = await commands.trash_item(work, actor, item_id)
    return shapes.DeletedItem(item=item_detail(row), database=fields, file=file)


async def _check_manages(work: UnitOfWork, actor: Actor, item_id: Id) -> None:
    found = await placement(work, [actor.workspace_id], item_id, actor.user_id)
    if found is None:
        raise NotFoundError
    if level_on(found, actor.role) < Level.MANAGE:
        raise DeniedError("Changing the access mode needs manage access to the item.")


async def _keep_access(work: UnitOfWork, actor: Actor, item_id: Id) -> None:
    """Keep access for the member who restricts an item."""
    if actor.role in MANAGERS:
        return
    await grant_manage(work, actor, item_id)


@dataclass(frozen=True, slots=True)
class Creation:
    """One item to create: who asks, and with which body."""

    work: UnitOfWork
    actor: Actor
    keys: KeyRing
    body: shapes.CreateItem

    async def create_item(self, target_id: Id | None) -> Id:
        """The new item, for kinds whose own command makes none."""
        return await commands.create_item_for(
            self.work,
            self.actor,
            self.body.kind,
            target_id,
            self.body.title,
            parent_item_id=self.body.parent_item_id,
        )

    def target_body(self, model: type[M], **defaults: object) -> M:
        """The body that creates the target: `config`, with the item's title as its label.

        Raises `ValidationError` below `config`.
        """
        config = self.body.config or {}
        owned = OWNED[self.body.kind]
        for key in owned:
            if key in config:
                raise ValidationError.at(f"config.{key}", "Set this on the item itself.")
        from_item: JsonObject = {"label": self.body.title}
        if "parentItemId" in owned and self.body.parent_item_id is not None:
            from_item["parentItemId"] = str(self.body.parent_item_id)
        return read_part(model, {**defaults, **config, **from_item}, "config")


OWNED: Mapping[ItemKind, tuple[str, ...]] = MappingProxyType(
    {
        ItemKind.DATABASE: ("label", "icon", "parentItemId", "order"),
        ItemKind.DATA_SOURCE: ("label", "parentItemId"),
        ItemKind.ACTION: ("label",),
        ItemKind.AUTOMATION: ("label", "parentItemId"),
    }
)
"""The keys of the body of a target that its item says, so that `config` does not have them."""

Factory = Callable[[Creation], Awaitable[tuple[Id, shapes.TargetDetail | None]]]


async def _folder(creation: Creation) -> tuple[Id, None]:
    return await creation.create_item(None), None


async def _surface(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    surface_id = new_id()
    item_id = await creation.create_item(surface_id)
    await create_surface(
        creation.work,
        creation.actor,
        item_id,
        SurfaceKind(creation.body.kind.value),
        creation.body.content,
        surface_id=surface_id,
    )
    made = await find_surface(creation.work, creation.actor, surface_id, Scope.SURFACES_WRITE)
    return item_id, await detail(creation.work, creation.actor, made)


async def _view(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    view_id = new_id()
    item_id = await creation.create_item(view_id)
    config = creation.body.config or {}
    await create_item_view(
        creation.work, creation.actor, item_id, creation.body.title, config, view_id=view_id
    )
    database_id = Id(config["databaseId"])
    return item_id, await get_view(creation.work, creation.actor, database_id, view_id)


async def _form(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    form_id = new_id()
    item_id = await creation.create_item(form_id)
    config = creation.body.config or {}
    await create_form(creation.work, creation.actor, item_id, config, form_id=form_id)
    return item_id, await get_form(creation.work, creation.actor, form_id)


async def _database(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    body = creation.target_body(CreateDatabase)
    with problems_within("config"):
        made = await create_database(creation.work, creation.actor, body)
    return made.item_id, made


async def _file(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    """Place an uploaded file. Raises `ConflictError` when another item places it."""
    work, actor = creation.work, creation.actor
    file_id = read_part(shapes.FileItemConfig, creation.body.config or {}, "config").file_id
    seen = await visible_file(work, [actor.workspace_id], file_id, actor.user_id)
    if seen is None or level_on(seen, actor.role) < Level.VIEW:
        raise NotFoundError("file")
    await lock_unplaced(work, actor, file_id)
    item_id = await creation.create_item(file_id)
    return item_id, await stored_file(work, actor.workspace_id, file_id, creation.keys)


async def _data_source(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    body = creation.target_body(CreateDataSource)
    with problems_within("config"):
        made = await create_data_source(creation.work, creation.actor, body)
    return made.item_id, await data_source_detail(creation.work, made)


async def _action(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    body = creation.target_body(CreateAction)
    with problems_within("config"):
        made = await create_action(
            creation.work, creation.actor, body, creation.body.parent_item_id
        )
    return made.item_id, made


async def _automation(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    """Without a config: triggered by hand, and a draft whose graph is empty."""
    body = creation.target_body(CreateAutomation, graph={})
    with problems_within("config"):
        made = await create_automation(creation.work, creation.actor, creation.keys, body)
    return made.item_id, made


async def _external_resource(creation: Creation) -> tuple[Id, shapes.TargetDetail]:
    body = read_part(CreateMount, creation.body.config or {}, "config")
    made = await create_mount(
        creation.work, creation.actor, creation.body.title, creation.body.parent_item_id, body
    )
    return made.item_id, made


FACTORIES: Mapping[ItemKind, Factory] = MappingProxyType(
    {
        ItemKind.FOLDER: _folder,
        ItemKind.PAGE: _surface,
        ItemKind.NOTE: _surface,
        ItemKind.DASHBOARD: _surface,
        ItemKind.CANVAS: _surface,
        ItemKind.VIEW: _view,
        ItemKind.FORM: _form,
        ItemKind.DATABASE: _database,
        ItemKind.FILE: _file,
        ItemKind.DATA_SOURCE: _data_source,
        ItemKind.ACTION: _action,
        ItemKind.AUTOMATION: _automation,
        ItemKind.EXTERNAL_RESOURCE: _external_resource,
    }
)

WITH_CONTENT = frozenset({ItemKind.PAGE, ItemKind.NOTE, ItemKind.DASHBOARD, ItemKind.CANVAS})
"""The kinds whose body has `content` and no `config`."""
