"""Creating what stands behind a new item, kind by kind."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from models.automation.actions.commands import create_action
from models.automation.actions.shapes import CreateAction
from models.automation.automations.commands import create_automation
from models.automation.automations.shapes import CreateAutomation
from models.content.files.commands import lock_unplaced
from models.content.files.queries import stored_file
from models.content.files.queries import visible as visible_file
from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.content.surfaces.commands.surfaces import create_surface
from models.content.surfaces.queries import detail, find_surface
from models.content.surfaces.rules.kinds import SurfaceKind
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.inputs import M, read_part, within
from models.data.databases.commands.databases import create_database
from models.data.databases.shapes import CreateDatabase
from models.data.forms.commands import create_form
from models.data.forms.queries import get_form
from models.data.views.commands.views import create_item_view
from models.data.views.queries import get_view
from models.sources.data_source_overviews.queries import detail as data_source_detail
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.shapes import CreateDataSource
from models.sources.mounts.commands.mounts import create_mount
from models.sources.mounts.shapes import CreateMount
from models.workspace.targets.shapes import CreateItem, FileItemConfig, TargetDetail
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.ids import new_id


@dataclass(frozen=True, slots=True)
class Creation:
    """One item to create: who asks, and with which body."""

    work: UnitOfWork
    actor: Actor
    keys: KeyRing
    body: CreateItem

    async def create_item(self, target_id: Id | None) -> Id:
        """The new item, for kinds whose own command makes none."""
        return await create_item_for(
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
                raise ValidationError.at(f"config.{key}", "The item itself says this.")
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

Factory = Callable[[Creation], Awaitable[tuple[Id, TargetDetail | None]]]


async def _folder(creation: Creation) -> tuple[Id, None]:
    return await creation.create_item(None), None


async def _surface(creation: Creation) -> tuple[Id, TargetDetail]:
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


async def _view(creation: Creation) -> tuple[Id, TargetDetail]:
    view_id = new_id()
    item_id = await creation.create_item(view_id)
    config = creation.body.config or {}
    await create_item_view(
        creation.work, creation.actor, item_id, creation.body.title, config, view_id=view_id
    )
    database_id = Id(config["databaseId"])
    return item_id, await get_view(creation.work, creation.actor, database_id, view_id)


async def _form(creation: Creation) -> tuple[Id, TargetDetail]:
    form_id = new_id()
    item_id = await creation.create_item(form_id)
    config = creation.body.config or {}
    await create_form(creation.work, creation.actor, item_id, config, form_id=form_id)
    return item_id, await get_form(creation.work, creation.actor, form_id)


async def _database(creation: Creation) -> tuple[Id, TargetDetail]:
    body = creation.target_body(CreateDatabase)
    with within("config"):
        made = await create_database(creation.work, creation.actor, body)
    return made.item_id, made


async def _file(creation: Creation) -> tuple[Id, TargetDetail]:
    """Place an uploaded file. Raises `ConflictError` when another item places it."""
    work, actor = creation.work, creation.actor
    file_id = read_part(FileItemConfig, creation.body.config or {}, "config").file_id
    seen = await visible_file(work, [actor.workspace_id], file_id, actor.user_id)
    if seen is None or level_on(seen, actor.role) < Level.VIEW:
        raise NotFoundError("file")
    await lock_unplaced(work, actor, file_id)
    item_id = await creation.create_item(file_id)
    return item_id, await stored_file(work, actor.workspace_id, file_id, creation.keys)


async def _data_source(creation: Creation) -> tuple[Id, TargetDetail]:
    body = creation.target_body(CreateDataSource)
    with within("config"):
        made = await create_data_source(creation.work, creation.actor, body)
    return made.item_id, await data_source_detail(creation.work, made)


async def _action(creation: Creation) -> tuple[Id, TargetDetail]:
    body = creation.target_body(CreateAction)
    with within("config"):
        made = await create_action(
            creation.work, creation.actor, body, creation.body.parent_item_id
        )
    return made.item_id, made


async def _automation(creation: Creation) -> tuple[Id, TargetDetail]:
    """Without a config: triggered by hand, and a draft whose graph is empty."""
    body = creation.target_body(CreateAutomation, graph={})
    with within("config"):
        made = await create_automation(creation.work, creation.actor, creation.keys, body)
    return made.item_id, made


async def _external_resource(creation: Creation) -> tuple[Id, TargetDetail]:
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
