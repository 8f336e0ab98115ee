"""Pauses that the answers of hosts ask for."""

import asyncio
from datetime import timedelta

from sqlalchemy import select, update

from models.sources.outbound_limits.tables import outbound_place
from models.sources.outbound_limits.turns import put_off
from runtime.clock import utc_now
from tests.support.spaces import Space

HOSTS = [f"h{number}.example.test" for number in range(6)]


async def paused_hosts(space: Space) -> set[str]:
    async with space.database.reading() as work:
        mine = outbound_place.c.workspace_id == space.id
        rows = await work.rows(select(outbound_place.c.host).where(mine))
    return {row.host for row in rows}


async def test_answers_of_many_hosts_at_once_do_not_wait_for_each_other(space: Space) -> None:
    async def ask(host: str) -> None:
        async with space.database.transaction() as work:
            await put_off(work, space.id, host, 60)

    for _ in range(15):
        await asyncio.gather(*map(ask, HOSTS))
        assert await paused_hosts(space) == set(HOSTS)
        async with space.database.transaction() as work:
            over = utc_now() - timedelta(seconds=1)
            await work.execute(update(outbound_place).values(paused_until=over))


async def test_a_pause_that_is_over_leaves_no_row(space: Space) -> None:
    for host in HOSTS[:2]:
        async with space.database.transaction() as work:
            await put_off(work, space.id, host, 60)
            over = utc_now() - timedelta(seconds=1)
            mine = outbound_place.c.workspace_id == space.id
            await work.execute(update(outbound_place).where(mine).values(paused_until=over))
    async with space.database.transaction() as work:
        await put_off(work, space.id, HOSTS[2], 60)
    assert await paused_hosts(space) == {HOSTS[2]}
