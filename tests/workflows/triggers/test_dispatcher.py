"""Dispatching: once with any number of dispatchers, in order, fairly, and despite a failing
automation.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, select, text

from activities.pollers import Dispatcher
from models.automation.automation_runs.tables import automation_run
from models.automation.inbox.rules import Judgement
from models.automation.triggers.dispatch import (
    BATCH,
    FIRST_WORKSPACE,
    MAX_ATTEMPTS,
    backoff,
    dispatch,
)
from models.automation.triggers.subscribers import start_run
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually
from tests.support.spaces import make_space
from tests.support.triggers import Listening

pytestmark = pytest.mark.takes(seconds=20)


@pytest_asyncio.fixture
async def goods(engine: Engine) -> AsyncIterator[Listening]:
    yield await Listening.within(engine.database, (await make_space(engine.database, KEYS)).actor)


@pytest.mark.long
async def test_dispatchers_at_once_answer_every_change_once(goods: Listening) -> None:
    subscribers = [await goods.automation("record_created") for _ in range(3)]
    for number in range(60):
        await goods.create_unheard(f"{number:02}")
    await goods.release()
    dispatchers = [Dispatcher(goods.database) for _ in range(3)]
    while await goods.events():
        await asyncio.gather(*(one.turn() for one in dispatchers))
    for subscriber in subscribers:
        titles = [told["record"]["title"] for told in await goods.payloads(subscriber)]
        assert sorted(titles) == [f"{number:02}" for number in range(60)]


@pytest.mark.long
async def test_workspaces_take_turns_and_each_keeps_its_order(
    goods: Listening, engine: Engine
) -> None:
    others = [
        await Listening.within(engine.database, (await make_space(engine.database, KEYS)).actor)
        for _ in range(2)
    ]
    spaces = [goods, *others]
    for space in spaces:
        await space.automation("record_created")
        for number in range(BATCH + 5):
            await space.create_unheard(f"{number:02}")
    taken: dict[Any, list[str]] = {space.actor.workspace_id: [] for space in spaces}
    turns: list[set[Any]] = []
    async with engine.database.transaction() as work:
        # No other dispatcher sees them become due.
        for space in spaces:
            await work.execute(space.of_events().values(due_at=work.now))
        after = FIRST_WORKSPACE
        while any(len(titles) < BATCH + 5 for titles in taken.values()):
            events = [one for one in await dispatch(work, after) if one.workspace_id in taken]
            after = events[-1].workspace_id if events else FIRST_WORKSPACE
            turns.append({one.workspace_id for one in events})
            for one in events:
                taken[one.workspace_id].append(one.payload["record"]["title"])
    assert all(titles == [f"{n:02}" for n in range(BATCH + 5)] for titles in taken.values())
    first = [turn for turn in turns if turn][:3]
    assert set().union(*first) == set(taken)


@pytest.mark.long
async def test_an_automation_that_fails_affects_no_other(
    goods: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await goods.automation("record_created")
    sound = await goods.automation("record_created")
    poison(monkeypatch, broken)
    await goods.create("A")

    async def heard() -> bool:
        return await runs(goods, sound) == 1

    await eventually(heard, what="the run of the other automation")
    (event,) = await goods.events()
    assert event.attempts > 0
    monkeypatch.undo()
    await goods.release()
    assert (await goods.count(broken), await goods.count(sound)) == (1, 1)


def poison(monkeypatch: pytest.MonkeyPatch, automation_id: Any) -> None:
    """Let the database refuse every write of this automation."""

    async def refuse(work: Any, subscriber: Any, *others: Any) -> Judgement:
        if subscriber.automation_id == automation_id:
            await work.execute(text("SELECT 1 / 0"))
        return await start_run(work, subscriber, *others)

    monkeypatch.setattr("models.automation.triggers.dispatch.start_run", refuse)


@pytest.mark.long
async def test_a_change_dispatched_again_is_debounced_once(
    goods: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await goods.automation("record_updated")
    patient = await goods.automation("record_updated", debounceSeconds=3)
    one = await goods.create("A", price=1)
    await goods.set(one.id, price=2)
    await goods.heard()
    poison(monkeypatch, broken)
    await goods.set(one.id, price=3)

    async def answered() -> bool:
        return await runs(goods, patient) > 0

    await eventually(answered, what="the end of the burst")
    monkeypatch.undo()
    await goods.release()
    await goods.quiet()
    prices = {"before": 1, "record": 3}
    (told,) = await goods.payloads(patient)
    assert {side: told[side]["data"]["price"] for side in prices} == prices
    assert await goods.count(broken) == 2


async def runs(goods: Listening, automation_id: Any) -> int:
    async with goods.database.transaction() as work:
        counted = select(func.count()).where(automation_run.c.automation_id == automation_id)
        return int(await work.scalar(counted))


@pytest.mark.long
async def test_an_event_that_cannot_be_dispatched_is_dropped_after_ten_attempts(
    goods: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await goods.automation("record_created")
    poison(monkeypatch, broken)
    await goods.create_unheard("A")
    async with goods.database.transaction() as work:
        last = MAX_ATTEMPTS - 1
        await work.execute(goods.of_events().values(attempts=last, due_at=work.now))
    await goods.heard()
    assert await runs(goods, broken) == 0


def test_the_backoff_between_attempts_grows() -> None:
    waits = [backoff(attempts).total_seconds() for attempts in range(MAX_ATTEMPTS)]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits == sorted(waits)
    assert waits[-1] == 300
