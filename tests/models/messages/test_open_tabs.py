"""Tabs in which people edit the same thing."""

from datetime import timedelta

from sqlalchemy import func, select, update

from models.messages.realtime import leave_tab, open_tab, purge_tabs, report_tab
from runtime.clock import utc_now
from runtime.ids import new_id
from tests.support.spaces import Space


async def test_others_are_named_once_until_their_tabs_are_left_or_forgotten(space: Space) -> None:
    place, mine, other = new_id(), new_id(), new_id()
    tabs = [new_id() for _ in range(3)]
    async with space.database.transaction() as work:
        assert await report_tab(work, space.id, place, tabs[0], mine) == []
        assert await report_tab(work, space.id, place, tabs[1], other) == [mine]
        assert await report_tab(work, space.id, place, tabs[2], other) == sorted([mine, other])
        assert await report_tab(work, space.id, place, tabs[0], mine) == [other]
        await leave_tab(work, space.id, place, tabs[1])
        assert await report_tab(work, space.id, place, tabs[0], mine) == [other]
        await leave_tab(work, space.id, place, tabs[2])
        assert await report_tab(work, space.id, place, tabs[0], mine) == []


async def test_a_sweep_removes_tabs_that_were_not_closed(space: Space) -> None:
    place, stays = new_id(), new_id()
    async with space.database.transaction() as work:
        for tab in (new_id(), stays):
            await report_tab(work, space.id, place, tab, new_id())
        crashed = update(open_tab).where(open_tab.c.place_id == place, open_tab.c.tab_id != stays)
        await work.execute(crashed.values(seen_at=utc_now() - timedelta(minutes=1)))
        assert await purge_tabs(work) >= 1
        left = select(func.count()).where(open_tab.c.place_id == place)
        assert await work.scalar(left) == 1
