"""How long change sets are kept."""

from datetime import timedelta

from sqlalchemy import select, update

from models.workspace.changes.commands import LIFETIME, expire_changes, propose, purge_changes
from models.workspace.changes.queries import change_set, get_changes
from models.workspace.changes.shapes import Operation
from runtime.ids import new_id
from tests.support.spaces import Space

PAGE = Operation.model_validate({"kind": "create_item", "input": {"kind": "page", "title": "Page"}})


async def test_a_change_set_that_was_never_applied_expires_and_is_removed_later(
    space: Space,
) -> None:
    old, young = new_id(), new_id()
    async with space.database.transaction() as work:
        for one in (old, young):
            await propose(work, space.actor, space.keys, one, [PAGE])
        waited = {"expires_at": change_set.c.expires_at - LIFETIME}
        await work.execute(update(change_set).where(change_set.c.id == old).values(waited))
    async with space.database.transaction() as work:
        while await expire_changes(work):
            pass
        assert (await get_changes(work, space.actor, old)).status == "expired"
        assert (await get_changes(work, space.actor, young)).status == "planned"
    async with space.database.transaction() as work:
        assert await purge_changes(work, work.now - timedelta(days=1)) == 0
        while await purge_changes(work, work.now + timedelta(seconds=1)):
            pass
        mine = select(change_set.c.id).where(change_set.c.workspace_id == space.id)
        assert [row.id for row in await work.rows(mine)] == [young]
