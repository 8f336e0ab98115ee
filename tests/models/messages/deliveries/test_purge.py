"""Deliveries that ended long ago are forgotten."""

from typing import Any

from sqlalchemy import insert

from models.core.base import Id
from models.messages.deliveries.commands import delivery
from models.messages.deliveries.lines import purge_deliveries
from models.messages.deliveries.rules import DeliveryStatus
from runtime.ids import new_id
from tests.support.ageing import ago, ids_of, purged
from tests.support.spaces import Space


async def old_delivery(space: Space, days: float, status: DeliveryStatus) -> Id:
    """A delivery that was accepted this number of days ago, and ended unless it is pending."""
    row: dict[str, Any] = {
        "id": new_id(),
        "workspace_id": space.id,
        "channel": "push",
        "subject_id": new_id(),
        "target_id": new_id(),
        "input": {},
        "status": status.value,
        "attempts": 1,
        "executing": False,
        "executions": 1,
        "expires_at": ago(days - 4),
        "created_at": ago(days),
        "completed_at": None if status is DeliveryStatus.PENDING else ago(days),
    }
    async with space.database.transaction() as work:
        await work.execute(insert(delivery).values(row))
    return row["id"]


async def test_only_those_that_ended_long_ago_go(space: Space, foreign: Space) -> None:
    await purged(space.database, purge_deliveries, ago(30))
    kept = {
        await old_delivery(space, 29, DeliveryStatus.DELIVERED),
        await old_delivery(space, 31, DeliveryStatus.PENDING),
    }
    ended = [status for status in DeliveryStatus if status is not DeliveryStatus.PENDING]
    for status in ended:
        await old_delivery(space, 31, status)
    theirs = await old_delivery(foreign, 29, DeliveryStatus.FAILED)
    removed = await purged(space.database, purge_deliveries, ago(30), limit=3)
    assert removed == len(ended)
    assert await ids_of(space, delivery) == kept
    assert await ids_of(foreign, delivery) == {theirs}
