"""Each outcome of an event is planted, and its reason computed beside the code that judges it.

Those of webhooks are planted in `tests/api/automation/test_trigger_causes.py`.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select, text

from models.automation.automation_runs.commands import keep_passed_over
from models.automation.automations.schedules import AUTOMATION_SCHEDULES
from models.automation.automations.tables import automation
from models.automation.inbox.queries import why_not
from models.automation.inbox.rules import EventOutcome
from models.automation.inbox.store import inbox_outcome
from models.automation.triggers.dispatch import MAX_ATTEMPTS
from models.automation.triggers.subscribers import debounced_change, start_run
from models.content.items.commands import archive_item
from models.core.base import Id
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseWork
from models.core.schedules.commands import scheduled
from models.core.schedules.timetables import PassedOverCounts
from models.workspace import pauses
from runtime.ids import new_id
from tests.api.automation.test_trigger_causes import OUTCOMES as OF_WEBHOOKS
from tests.support.actions import act
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import eventually
from tests.support.spaces import make_space
from tests.support.triggers import Listening

pytestmark = pytest.mark.takes(seconds=30)

Json = dict[str, Any]

LONGEST_CHAIN = 8
"""Runs that may lead to one another (interface.md#chains-of-runs)."""
DAY = graph(node("wait", "delay", seconds=86_400))
CHEAP = {"field": "price", "op": "lt", "value": 50}


@dataclass(slots=True)
class Change:
    """A change of the record, by a person or by a run at the end of a chain."""

    price: int
    keys: set[str]
    chain: int = 0


@dataclass(slots=True)
class Automation:
    """An automation that listens to changes, and the outcomes of those that it should have."""

    judge: Callable[["Automation", Change], str]
    config: Json = field(default_factory=dict)
    graph: Json | None = None
    expected: list[str] = field(default_factory=list)
    id: Id = field(default_factory=new_id)

    @property
    def merges(self) -> bool:
        """True when a change waits for those that follow it."""
        return "debounced" in self.expected

    @property
    def runs(self) -> int:
        """Runs that exist already."""
        return sum(outcome in {"run", "queued"} for outcome in self.expected)


def start(_: Automation, change: Change) -> str:
    return "loop" if change.chain >= LONGEST_CHAIN else "run"


def limited(otherwise: str) -> Callable[[Automation, Change], str]:
    """The one slot is taken by the first run, which takes a day."""
    return lambda own, change: (
        outcome if (outcome := start(own, change)) == "loop" or not own.runs else otherwise
    )


def always(outcome: str) -> Callable[[Automation, Change], str]:
    return lambda *_: outcome


def automations() -> Mapping[str, Automation]:
    """One for each cause, and some for several."""
    one_slot = {"concurrency": {"limit": 1, "policy": "skip"}}
    return {
        "every": Automation(start),
        "cheap": Automation(
            lambda own, change: start(own, change) if change.price < 50 else "filtered",
            {"filter": CHEAP},
        ),
        "state": Automation(
            lambda own, change: start(own, change) if "state" in change.keys else "filtered",
            {"fieldKeys": ["state"]},
        ),
        "skipping": Automation(limited("skipped"), one_slot, DAY),
        "queueing": Automation(
            limited("queued"), {"concurrency": {"limit": 1, "policy": "queue"}}, DAY
        ),
        "paused": Automation(
            lambda own, change: "paused" if start(own, change) == "run" else "loop"
        ),
        "broken": Automation(
            always("filter_failed"), {"filter": "1 / (record.data.price - record.data.price) > 0"}
        ),
        "patient": Automation(
            lambda own, change: "debounced" if own.merges or "price" in change.keys else "filtered",
            {"debounceSeconds": 3600, "fieldKeys": ["price"]},
        ),
        "disabled": Automation(always("disabled")),
        "archived": Automation(always("archived")),
        "draft": Automation(always("no_published_version")),
    }


@pytest_asyncio.fixture
async def goods(engine: Engine) -> AsyncIterator[Listening]:
    yield await Listening.within(engine.database, (await make_space(engine.database, KEYS)).actor)


async def listening(goods: Listening) -> Mapping[str, Automation]:
    """The automations, each in its state."""
    made = automations()
    for name, one in made.items():
        add = goods.draft if name == "draft" else goods.automation
        one.id = await add("record_updated", one.graph, **one.config)
    await goods.change(made["disabled"].id, enabled=False)
    async with goods.database.transaction() as work:
        of_archived = select(automation.c.item_id).where(automation.c.id == made["archived"].id)
        await archive_item(work, goods.actor, await work.scalar(of_archived), archived=True)
        body = PauseWork.model_validate({"reason": "Stocktaking"})
        await pauses.pause(work, goods.actor, PauseSubject.AUTOMATION, made["paused"].id, body)
    return made


async def told(goods: Listening, automation_id: Id) -> Counter[str]:
    """The outcomes by their number, as the summary of an automation has them."""
    await goods.heard()
    async with goods.database.snapshot() as work:
        summary = await why_not(work, goods.actor, automation_id)
    assert summary.events == sum(one.events for one in summary.reasons)
    return Counter({one.outcome.value: one.events for one in summary.reasons})


async def detail_of(goods: Listening, automation_id: Id, outcome: str) -> Json:
    """The detail of the one outcome of an automation that is of a kind."""
    column = inbox_outcome.c
    mine = column.automation_id == automation_id, column.outcome == outcome
    async with goods.database.transaction() as work:
        (row,) = await work.rows(select(column.detail).where(*mine))
    return {**row.detail}


async def changed(goods: Listening, record_id: Id, change: Change, number: int) -> None:
    """Write a change by a person, or in the name of the last run of a chain."""
    chain = tuple(new_id() for _ in range(change.chain))
    principal = replace(goods.actor.principal, run_chain=chain, run_id=chain[-1] if chain else None)
    values = {"price": change.price, "state": f"{number}"}
    named = {key: values[key] for key in sorted(change.keys)}
    await goods.set(record_id, replace(goods.actor, principal=principal), **named)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_the_outcome_of_every_change_is_its_planted_cause(
    goods: Listening, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # no secret
    made = await listening(goods)
    record = await goods.create("A", price=0, state="new")
    price, longest = 0, 0
    for number in range(14):
        keys = {key for key in ("price", "state") if chance.random() < 0.6} or {"state"}
        if "price" in keys:
            price = chance.choice([one for one in range(1, 100) if one != price])
        change = Change(price, keys, chance.choice([0, 0, 3, LONGEST_CHAIN, LONGEST_CHAIN + 2]))
        await changed(goods, record.id, change, number)
        for one in made.values():
            one.expected.append(one.judge(one, change))
        longest = max(longest, change.chain if made["patient"].merges else 0)
    for name, one in made.items():
        assert await told(goods, one.id) == Counter(one.expected), name
    patient = made["patient"]
    async with goods.database.transaction() as work:
        mine = debounced_change.c.automation_id == patient.id
        await work.execute(debounced_change.update().where(mine).values(due_at=work.now))
        work.notify_workers = True
    # The first event has the outcome of all changes together.
    merged = start(patient, Change(price, {"price"}, longest))
    patient.expected[patient.expected.index("debounced")] = merged

    async def judged() -> bool:
        return await told(goods, patient.id) == Counter(patient.expected)

    await eventually(judged, what="the outcome of the merged change")


SCHEMA = {"type": "object", "required": ["a"]}
CALLED: Mapping[str, tuple[Json, list[str]]] = {
    "free": ({}, ["run", "run"]),
    "taken": ({"concurrency": {"limit": 1, "policy": "skip"}}, ["run", "skipped"]),
    "typed": ({"inputSchema": SCHEMA}, ["invalid", "invalid"]),
    "closed": ({"kind": "webhook"}, ["not_allowed", "not_allowed"]),
    "disabled": ({}, ["disabled", "disabled"]),
}
"""Automations that are called twice: their triggers, and the outcomes of the calls."""


def calling(automation_id: object) -> Json:
    config = {"automationId": automation_id, "input": {}, "wait": False}
    return graph({"id": "call", "kind": "call_automation", "config": config})


@pytest.mark.long
@pytest.mark.parametrize("caller", ["automation", "action"])
async def test_the_outcome_of_every_call_is_its_planted_cause(
    goods: Listening, engine: Engine, caller: str
) -> None:
    engine = replace(engine, actor=goods.actor)
    for name, (config, outcomes) in CALLED.items():
        trigger = {"kind": "manual", **config}
        called = await engine.publish(DAY, triggerConfig=trigger, enabled=name != "disabled")
        # Actions run any automation that can run.
        expected = ["run", "run"] if (caller, name) == ("action", "closed") else outcomes
        for place in range(len(expected)):
            if caller == "action":
                await act(engine, "run_automation", automationId=str(called.id))
            else:
                # An input that is never taken is published only where the automation is computed.
                bound = {"type": "expression", "value": f"'{called.id}' + trigger.nothing"}
                calls = await engine.publish(calling(bound))
                await engine.ended(calls.id, await engine.start(calls.id, {"nothing": ""}))
            assert await told(goods, called.id) == Counter(expected[: place + 1]), name
            if name == "taken" and place == 1:
                detail = await detail_of(goods, called.id, "skipped")
                assert detail.pop("message")
                assert detail == {"limit": 1, "policy": "skip", "key": "null"}


@pytest.mark.long
async def test_a_call_at_the_end_of_a_chain_is_a_loop(goods: Listening, engine: Engine) -> None:
    engine = replace(engine, actor=goods.actor)
    again = {"type": "trigger", "value": "self"}
    config = {"automationId": again, "input": {"self": again}, "wait": False}
    circle = await engine.publish(graph({"id": "c", "kind": "call_automation", "config": config}))
    await engine.start(circle.id, {"self": str(circle.id)})
    expected = Counter({"run": LONGEST_CHAIN - 1, "loop": 1})

    async def is_over() -> bool:
        return await told(goods, circle.id) == expected

    await eventually(is_over, what="the end of the circle")
    assert len((await detail_of(goods, circle.id, "loop"))["chain"]) == LONGEST_CHAIN


async def test_due_times_that_were_passed_over_are_kept(goods: Listening) -> None:
    every = await goods.automation("schedule", at_database=False, cron="0 0 1 1 *", timezone="UTC")
    async with goods.database.transaction() as work:
        schedule = await scheduled(work, AUTOMATION_SCHEDULES, every)
        assert schedule is not None
        await keep_passed_over(work, schedule, PassedOverCounts(2, 1))
    assert await told(goods, every) == Counter(["passed_over"])


@pytest.mark.long
async def test_an_event_that_was_tried_too_often_has_failed(
    goods: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursed, sound = [await goods.automation("record_created") for _ in range(2)]

    async def refuse(work: Any, subscriber: Any, *others: Any) -> Any:
        if subscriber.automation_id == cursed:
            await work.execute(text("SELECT 1 / 0"))
        return await start_run(work, subscriber, *others)

    monkeypatch.setattr("models.automation.triggers.dispatch.start_run", refuse)
    await goods.create_unheard("A")
    async with goods.database.transaction() as work:
        last = {"attempts": MAX_ATTEMPTS - 1, "due_at": work.now}
        await work.execute(goods.of_events().values(**last))
    assert await told(goods, cursed) == Counter(["failed"])
    assert await told(goods, sound) == Counter(["run"])


OUTCOMES = {
    *("run", "queued", "paused", "debounced", "filtered", "filter_failed", "skipped", "disabled"),
    *("archived", "no_published_version", "not_allowed", "loop", "passed_over", "failed"),
    "invalid",
}
"""The outcomes that this file plants."""


def test_every_outcome_is_planted() -> None:
    assert {*EventOutcome} == OUTCOMES | OF_WEBHOOKS
