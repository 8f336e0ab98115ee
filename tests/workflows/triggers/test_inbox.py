"""What the inbox says of events: the reason is the one that was planted, for every cause."""

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select

from models.automation.automation_runs.commands import keep_passed_over
from models.automation.automations.schedules import AUTOMATION_SCHEDULES
from models.automation.inbox.store import inbox_event, inbox_outcome, purge_inbox
from models.automation.triggers.subscribers import debounced_change
from models.core.base import Id
from models.core.schedules.commands import scheduled
from models.core.schedules.timetables import PassedOverCounts
from runtime.clock import utc_now
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually
from tests.support.spaces import make_space
from tests.support.triggers import Listening

pytestmark = pytest.mark.takes(seconds=20)

Json = dict[str, Any]


@pytest_asyncio.fixture
async def goods(engine: Engine) -> AsyncIterator[Listening]:
    yield await Listening.within(engine.database, (await make_space(engine.database, KEYS)).actor)


async def outcomes(goods: Listening, automation_id: Id) -> Sequence[Any]:
    """The outcomes of an automation with the payloads of their events, in their order."""
    await goods.heard()
    async with goods.database.transaction() as work:
        return await work.rows(
            select(inbox_outcome, inbox_event.c.payload, inbox_event.c.subject_id)
            .join(inbox_event, inbox_event.c.id == inbox_outcome.c.event_id)
            .where(
                inbox_outcome.c.workspace_id == goods.actor.workspace_id,
                inbox_outcome.c.automation_id == automation_id,
            )
            .order_by(inbox_outcome.c.received_at, inbox_outcome.c.event_id)
        )


def price_of(row: Any) -> Any:
    return row.payload["record"]["data"].get("price")


@dataclass(frozen=True)
class Planted:
    """A trigger, and the outcome that a price and the fields of a change must have by it."""

    config: Json
    expected: Callable[[int, set[str]], str]


CHEAP = {"field": "price", "op": "lt", "value": 50}
PLANTED: Mapping[str, Planted] = {
    "every": Planted({}, lambda *_: "run"),
    "tree": Planted({"filter": CHEAP}, lambda price, _: "run" if price < 50 else "filtered"),
    "cel": Planted(
        {"filter": "record.data.price < 50 && record.data.price >= 10"},
        lambda price, _: "run" if 10 <= price < 50 else "filtered",
    ),
    "keys": Planted(
        {"fieldKeys": ["state"]}, lambda _, keys: "run" if "state" in keys else "filtered"
    ),
    "broken": Planted(
        {"filter": "1 / (record.data.price - record.data.price) > 0"}, lambda *_: "filter_failed"
    ),
    "disabled": Planted({}, lambda *_: "disabled"),
    "unpublished": Planted({"filter": CHEAP}, lambda *_: "no_published_version"),
}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
async def test_the_reason_of_every_change_is_the_one_that_was_planted(
    goods: Listening, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # no secret
    automations = {}
    for name, planted in PLANTED.items():
        make = goods.draft if name == "unpublished" else goods.automation
        automations[name] = await make("record_updated", **planted.config)
    await goods.change(automations["disabled"], enabled=False)
    record = await goods.create("A", price=0, state="new")
    expected: dict[str, list[str]] = {name: [] for name in PLANTED}
    price = 0
    for number in range(12):
        change: Json = {}
        if chance.random() < 0.7:
            change["price"] = price = chance.choice([one for one in range(100) if one != price])
        if not change or chance.random() < 0.5:
            change["state"] = f"{number}"
        await goods.set(record.id, **change)
        for name, planted in PLANTED.items():
            expected[name].append(planted.expected(price, set(change)))
    for name, automation_id in automations.items():
        rows = await outcomes(goods, automation_id)
        assert [row.outcome for row in rows] == expected[name], name
        for row in rows:
            assert (row.run_id is not None) == (row.outcome == "run")
            if row.outcome == "filtered" and name == "tree":
                assert row.detail == {"term": CHEAP, "value": price_of(row)}
            if row.outcome == "filtered" and name == "cel":
                side = "< 50" if price_of(row) >= 50 else ">= 10"
                term = f"record.data.price {side}"
                assert row.detail == {"term": term, "value": {"record.data.price": price_of(row)}}


async def test_changes_of_another_kind_leave_nothing(goods: Listening) -> None:
    created = await goods.automation("record_created")
    record = await goods.create("A", price=1)
    await goods.set(record.id, price=2)
    (row,) = await outcomes(goods, created)
    assert (row.outcome, row.subject_id) == ("run", goods.table)


async def test_a_debounced_change_is_judged_again_when_it_is_due(goods: Listening) -> None:
    patient = await goods.automation(
        "record_updated", debounceSeconds=3600, filter={"field": "price", "op": "gt", "value": 2}
    )
    record = await goods.create("A", price=1)
    for price in (2, 3):
        await goods.set(record.id, price=price)
    first, second = await outcomes(goods, patient)
    assert (first.outcome, second.outcome) == ("debounced", "debounced")
    assert second.detail == {"eventId": str(first.event_id)}
    async with goods.database.transaction() as work:
        mine = debounced_change.c.automation_id == patient
        await work.execute(debounced_change.update().where(mine).values(due_at=work.now))
        work.notify_workers = True

    async def judged() -> bool:
        return (await outcomes(goods, patient))[0].outcome != "debounced"

    await eventually(judged, what="the end of the burst")
    first, second = await outcomes(goods, patient)
    assert (first.outcome, second.outcome) == ("run", "debounced")


@pytest.mark.long
async def test_all_slots_taken_says_which(goods: Listening) -> None:
    day = {"nodes": [{"id": "wait", "kind": "delay", "config": {"seconds": 86_400}}], "edges": []}
    narrow = await goods.automation(
        "record_created", day, concurrency={"limit": 1, "policy": "skip"}
    )
    await goods.create("first")
    await goods.create("second")
    first, second = await outcomes(goods, narrow)
    assert (first.outcome, second.outcome) == ("run", "skipped")
    assert second.detail == {"limit": 1, "policy": "skip", "key": "null"}


async def test_due_times_that_were_passed_over_are_kept(goods: Listening) -> None:
    every = await goods.automation("schedule", at_database=False, cron="0 0 1 1 *", timezone="UTC")
    for counts in (PassedOverCounts(2, 1), PassedOverCounts(0, 0)):
        async with goods.database.transaction() as work:
            schedule = await scheduled(work, AUTOMATION_SCHEDULES, every)
            assert schedule is not None
            await keep_passed_over(work, schedule, counts)
    (row,) = await outcomes(goods, every)
    assert row.outcome == "passed_over"
    assert row.detail == {"late": 1, "duringAnEarlierRun": 2}


async def test_events_past_their_time_go_with_their_outcomes(goods: Listening) -> None:
    every = await goods.automation("record_created")
    await goods.create("A")
    assert len(await outcomes(goods, every)) == 1
    async with goods.database.transaction() as work:
        mine = inbox_event.c.workspace_id == goods.actor.workspace_id
        old = utc_now().replace(year=2000)
        await work.execute(inbox_event.update().where(mine).values(received_at=old))
        own = inbox_outcome.c.workspace_id == goods.actor.workspace_id
        await work.execute(inbox_outcome.update().where(own).values(received_at=old))
        before = old.replace(year=2001)
        while await purge_inbox(work, before):
            pass
    assert await outcomes(goods, every) == []


async def test_events_of_one_moment_over_the_bound_go_by_their_ids(
    goods: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = await goods.automation("record_created")
    for title in "ABCDE":
        await goods.create(title)
    now = utc_now()
    assert len(await outcomes(goods, every)) == 5
    async with goods.database.transaction() as work:
        for table in (inbox_event, inbox_outcome):
            mine = table.c.workspace_id == goods.actor.workspace_id
            await work.execute(table.update().where(mine).values(received_at=now))
    ids = [row.event_id for row in await outcomes(goods, every)]
    monkeypatch.setattr("models.automation.inbox.store.MAX_EVENTS", 3)
    async with goods.database.transaction() as work:
        while await purge_inbox(work, now.replace(year=2000)):
            pass
    assert [row.event_id for row in await outcomes(goods, every)] == ids[-3:]
