"""Starts of deliveries, when several workers look at the same time."""

from datetime import timedelta

from sqlalchemy import update

from models.core.base import Id
from models.messages.deliveries.commands import NewDelivery, accept_deliveries, delivery
from models.messages.deliveries.lines import start_deliveries
from models.messages.deliveries.rules import DeliveryChannel
from runtime.database import UnitOfWork
from runtime.ids import new_id
from tests.support.spaces import Space

LATER = timedelta(hours=1)


async def line(work: UnitOfWork, space: Space) -> None:
    """A line of two; the older one is due later."""
    target = new_id()
    older, younger = [
        NewDelivery(
            workspace_id=space.id,
            channel=DeliveryChannel.WEBHOOK,
            subject_id=new_id(),
            target_id=target,
        )
        for _ in range(2)
    ]
    await accept_deliveries(work, [older, younger])
    due = {"next_attempt_at": work.now + LATER / 2}
    await work.execute(update(delivery).where(delivery.c.id == older.id).values(due))


async def started_later(space: Space, workspace_id: Id) -> int:
    """The number that a starter starts once both are due."""
    async with space.database.transaction() as work:
        work.now += LATER
        return await start_deliveries(work, workspace_id)


async def test_starters_at_once_exceed_the_room_of_no_line(space: Space, foreign: Space) -> None:
    for each in (space, foreign):
        async with each.database.transaction() as work:
            await line(work, each)
    async with space.database.transaction() as first:
        assert await start_deliveries(first, space.id) == 1
        # It cannot see yet what the first one starts, and would choose the older one beside it.
        assert await started_later(space, space.id) == 0
        assert await started_later(space, foreign.id) == 1
    assert await started_later(space, space.id) == 0
