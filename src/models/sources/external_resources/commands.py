"""Creating and copying mounts."""

from sqlalchemy import insert, select

from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id
from models.sources.external_resources.rules.resources import MountStatus
from models.sources.external_resources.shapes import CreateMount, MountDetail
from models.sources.external_resources.tables import Mount, mount
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.ids import new_id


async def create_mount(
    work: UnitOfWork, actor: Actor, title: str, parent_item_id: Id | None, body: CreateMount
) -> MountDetail:
    """A mount with its item. No workspace has connections, so none is found.

    Raises `NotFoundError`, and what `check_parent` raises.
    """
    if body.connection_id is not None:
        raise NotFoundError("connection")
    mount_id = new_id()
    item_id = await create_item_for(
        work,
        actor,
        ItemKind.EXTERNAL_RESOURCE,
        mount_id,
        title,
        parent_item_id=parent_item_id,
    )
    made = await work.first(
        insert(mount)
        .values(
            id=mount_id,
            workspace_id=actor.workspace_id,
            item_id=item_id,
            resource=body.resource.to_json(),
            recursive=body.recursive,
            status=MountStatus.ACTIVE.value,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(mount),
        of=Mount,
    )
    return MountDetail.model_validate(made)


async def copy_mount(
    work: UnitOfWork, actor: Actor, mount_id: Id, title: str, parent_item_id: Id | None
) -> MountDetail:
    """A second mount of the same resource. Raises `NotFoundError`."""
    this = (mount.c.workspace_id == actor.workspace_id, mount.c.id == mount_id)
    found = await work.first(select(mount).where(*this), of=Mount)
    if found is None:
        raise NotFoundError("mount")
    body = CreateMount.model_validate({"resource": found.resource, "recursive": found.recursive})
    return await create_mount(work, actor, title, parent_item_id, body)
