"""Surfaces and forms for tests, placed in the tree by the commands themselves."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import insert, update

from models.content.items.commands import create_item_for
from models.content.items.joins import item, item_grant
from models.content.items.rules import AccessMode, ItemKind
from models.content.surfaces.commands import create_surface
from models.content.surfaces.rules.contents import SurfaceKind
from models.core.access.rules import Level
from models.data.forms.commands import create_form
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.spaces import Space


@dataclass(frozen=True, slots=True)
class Placed:
    """Something behind an item."""

    item_id: UUID
    id: UUID

    @property
    def path(self) -> str:
        """Of a surface."""
        return f"/v1/surfaces/{self.id}"


async def make_surface(
    space: Space, kind: str = "page", content: dict[str, Any] | None = None
) -> Placed:
    surface_id = new_id()
    async with space.database.transaction() as work:
        item_id = await create_item_for(work, space.actor, ItemKind(kind), surface_id, "Surface")
        await create_surface(
            work, space.actor, item_id, SurfaceKind(kind), content, surface_id=surface_id
        )
    return Placed(item_id, surface_id)


async def make_form(space: Space, config: dict[str, Any]) -> Placed:
    form_id = new_id()
    async with space.database.transaction() as work:
        item_id = await create_item_for(work, space.actor, ItemKind.FORM, form_id, "A form")
        await create_form(work, space.actor, item_id, config, form_id=form_id)
    return Placed(item_id, form_id)


async def change_item(space: Space, item_id: UUID, **values: Any) -> None:
    """Archive an item, or put it into the trash, as its own commands do."""
    async with space.database.transaction() as work:
        await work.execute(update(item).where(item.c.id == item_id).values(**values))


async def trash(space: Space, item_id: UUID) -> None:
    async with space.database.transaction() as work:
        statement = update(item).where(item.c.id == item_id).values(deleted_at=work.now)
        await work.execute(statement)


async def restrict(space: Space, item_id: UUID) -> None:
    await change_item(space, item_id, access_mode=AccessMode.RESTRICTED.value)


async def grant(space: Space, item_id: UUID, user_id: UUID, level: Level) -> None:
    async with space.database.transaction() as work:
        await work.execute(
            insert(item_grant).values(
                workspace_id=space.id,
                item_id=item_id,
                user_id=user_id,
                level=level.value,
                created_at=work.now,
                updated_at=work.now,
            )
        )


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "paragraph", "content": {"text": [{"text": text}]}, **more}


def plain(blocks: list[dict[str, Any]]) -> list[Any]:
    """Texts or kinds of blocks, with those of what is nested in them."""
    return [
        [
            block["content"]["text"][0]["text"] if block["content"].get("text") else block["kind"],
            *([plain(block["children"])] if block["children"] else []),
        ]
        for block in blocks
    ]


async def put(client: Client, placed: Placed, blocks: list[dict[str, Any]], **more: Any) -> Any:
    answer = await client.put(placed.path, json={"blocks": blocks, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]
