"""Concurrent runs of an automation, or of one key (interface.md#concurrency)."""

import asyncio
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from models.automation.automation_runs import commands, execution, queries, slots
from models.automation.automation_runs.acceptance import Accepted, RunRequest, accept
from models.automation.automation_runs.calls import Call, accept_call
from models.automation.automation_runs.filters import RunFilter
from models.automation.automation_runs.node_writes import pass_gate
from models.automation.automation_runs.rules import (
    OPEN_RUN,
    ConcurrencyKeyError,
    RunSource,
    RunStatus,
    SlotsTakenError,
)
from models.automation.automation_runs.run_header import automation_actor, load_header
from models.automation.automation_runs.shapes import TestRun as Body
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import commands as automations
from models.automation.automations import runnable_versions
from models.automation.automations.rules.attributes import early_problem
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.core.pagination import page_request
from runtime.derived_ids import derived_id
from runtime.temporal.outbox import outbox
from tests.support.engine import KEYS, Engine, Json, graph, node
from tests.support.patience import eventually
from tests.support.waits import held

pytestmark = pytest.mark.takes(seconds=20)


def holding() -> Json:
    """A graph whose runs keep their slot until they are cancelled."""
    return graph(node("hold", "delay", seconds=3_600))


def short() -> Json:
    return graph(node("only", "transform", output={"done": True}))


def failing() -> Json:
    return graph(node("only", "stop", result="failed", message="It had to."))


async def limited(
    engine: Engine, shape: Json, limit: int = 1, kind: str = "manual", **rules: Any
) -> UUID:
    """A published automation whose runs are limited."""
    config = {"kind": kind, "concurrency": {"limit": limit, **rules}}
    return (await engine.publish(shape, triggerConfig=config)).id


async def trigger(
    engine: Engine, automation_id: UUID, payload: Json | None = None, run_id: UUID | None = None
) -> Accepted:
    """Accept a run as a trigger does."""
    workspace_id = engine.actor.workspace_id
    async with engine.database.transaction() as work:
        version = await runnable_versions.live(work, workspace_id, automation_id)
        request = RunRequest(RunSource.SCHEDULE, payload or {}, run_id=run_id)
        return await accept(work, automation_actor(workspace_id, automation_id), version, request)


async def row(engine: Engine, run_id: UUID) -> Any:
    async with engine.database.transaction() as work:
        return await work.first(select(automation_run).where(automation_run.c.id == run_id))


async def is_waiting(engine: Engine, automation_id: UUID, run_id: UUID) -> None:
    """Wait until a holding run holds."""
    await engine.until(automation_id, run_id, lambda run: run.status == "waiting")


@pytest.mark.long
async def test_a_run_without_a_slot_is_queued_until_one_ends(engine: Engine) -> None:
    automation_id = await limited(engine, holding())
    first, second, third = [await engine.start(automation_id) for _ in range(3)]
    await is_waiting(engine, automation_id, first)
    for queued in (second, third):
        found = await row(engine, queued)
        assert (found.status, found.admitted_at) == ("queued", None)
        async with engine.database.transaction() as work:
            assert not await work.rows(select(outbox.c.id).where(outbox.c.subject_id == queued))
    await engine.cancel(automation_id, first)
    await is_waiting(engine, automation_id, second)
    assert (await row(engine, second)).admitted_at == (await row(engine, first)).completed_at
    assert (await row(engine, third)).admitted_at is None
    await engine.cancel(automation_id, second)
    await is_waiting(engine, automation_id, third)
    await engine.cancel(automation_id, third)


@pytest.mark.long
async def test_runs_are_admitted_in_the_order_in_which_they_were_asked_for(
    engine: Engine,
) -> None:
    automation_id = await limited(engine, short())
    run_ids = [derived_id("order", automation_id, number) for number in range(12)]
    for run_id in run_ids:
        await trigger(engine, automation_id, run_id=run_id)
    runs = [await engine.ended(automation_id, run_id) for run_id in run_ids]
    assert {run.status for run in runs} == {RunStatus.SUCCEEDED}
    began = [run.started_at for run in runs if run.started_at]
    assert began == sorted(began)
    for before, after in pairwise(runs):
        assert before.completed_at
        assert after.started_at
        assert before.completed_at <= after.started_at


async def test_runs_of_one_transaction_stand_in_line_as_they_were_asked_for(
    engine: Engine,
) -> None:
    automation_id = await limited(engine, short())
    workspace_id = engine.actor.workspace_id
    run_ids = [derived_id("together", automation_id, number) for number in range(12)]
    assert run_ids != sorted(run_ids)
    async with engine.database.transaction() as work:
        version = await runnable_versions.live(work, workspace_id, automation_id)
        for run_id in run_ids:
            request = RunRequest(RunSource.RECORD, {}, run_id=run_id)
            await accept(work, automation_actor(workspace_id, automation_id), version, request)
    runs = [await engine.ended(automation_id, run_id) for run_id in run_ids]
    for before, after in pairwise(runs):
        assert before.completed_at
        assert after.started_at
        assert before.completed_at <= after.started_at
    async with engine.database.transaction() as work:
        page = page_request(KEYS, 100, None)
        listed = await queries.list_runs(work, engine.actor, automation_id, page, RunFilter())
    assert [run.id for run in listed.runs] == run_ids[::-1]


async def test_a_cancelled_run_leaves_the_queue(engine: Engine) -> None:
    automation_id = await limited(engine, holding())
    first, second, third = [await engine.start(automation_id) for _ in range(3)]
    await is_waiting(engine, automation_id, first)
    assert (await engine.cancel(automation_id, second)).status == "cancelled"
    await engine.cancel(automation_id, first)
    await is_waiting(engine, automation_id, third)
    await engine.cancel(automation_id, third)
    assert (await row(engine, second)).started_at is None


@pytest.mark.long
async def test_keys_have_slots_of_their_own(engine: Engine) -> None:
    automation_id = await limited(
        engine, holding(), keyExpression="trigger.?customer.orValue(null)"
    )
    payloads: list[Json] = [{"customer": "a"}, {"customer": "b"}, {}, {"customer": 1}]
    firsts = [await engine.start(automation_id, payload) for payload in payloads]
    for run_id in firsts:
        await is_waiting(engine, automation_id, run_id)
    seconds = [await engine.start(automation_id, payload) for payload in payloads]
    assert [(await row(engine, run_id)).admitted_at for run_id in seconds] == [None] * 4
    keys = [(await row(engine, run_id)).concurrency_key for run_id in seconds]
    assert keys == ['"a"', '"b"', "null", "1"]
    for run_id in [*seconds, *firsts]:
        await engine.cancel(automation_id, run_id)


async def test_a_long_key_is_known_by_its_digest(engine: Engine) -> None:
    automation_id = await limited(engine, holding(), keyExpression="trigger.text")
    texts = ["x" * 5_000, "x" * 4_999 + "y", "\N{GRINNING FACE}" * 400]
    firsts = [await engine.start(automation_id, {"text": text}) for text in texts]
    keys = [(await row(engine, run_id)).concurrency_key for run_id in firsts]
    assert len(set(keys)) == 3
    assert {len(key) for key in keys} == {64}
    for run_id in firsts:
        assert (await row(engine, run_id)).admitted_at is not None
        await engine.cancel(automation_id, run_id)


async def test_a_skipped_run_leaves_nothing(engine: Engine) -> None:
    automation_id = await limited(engine, holding(), policy="skip")
    first = await engine.start(automation_id)
    with pytest.raises(SlotsTakenError):
        await engine.start(automation_id)
    accepted = await trigger(engine, automation_id)
    assert (accepted.created, accepted.skipped) == (False, True)
    assert await row(engine, accepted.run_id) is None
    await engine.cancel(automation_id, first)
    accepted = await trigger(engine, automation_id)
    assert (accepted.created, accepted.skipped) == (True, False)
    await engine.cancel(automation_id, accepted.run_id)


async def test_the_oldest_makes_room_for_the_newest(engine: Engine) -> None:
    automation_id = await limited(engine, holding(), limit=2, policy="cancel_oldest")
    runs = [await engine.start(automation_id) for _ in range(2)]
    for run_id in runs:
        await is_waiting(engine, automation_id, run_id)
    third = await engine.start(automation_id)
    oldest = await engine.get(automation_id, runs[0])
    assert (oldest.status, oldest.error) == ("cancelled", "Replaced by a newer run.")
    assert [one.status for one in oldest.node_runs] == ["cancelled"]
    await is_waiting(engine, automation_id, third)
    assert (await row(engine, runs[1])).status == "waiting"
    for run_id in (runs[1], third):
        await engine.cancel(automation_id, run_id)


async def test_a_repeated_trigger_cancels_nothing(engine: Engine) -> None:
    automation_id = await limited(engine, holding(), policy="cancel_oldest")
    run_id = derived_id("repeated", automation_id)
    assert (await trigger(engine, automation_id, run_id=run_id)).created
    assert not (await trigger(engine, automation_id, run_id=run_id)).created
    assert (await row(engine, run_id)).status in OPEN_RUN
    await engine.cancel(automation_id, run_id)


@pytest.mark.parametrize("end", ["succeeded", "failed", "abandoned"])
async def test_every_end_lets_the_next_in(engine: Engine, end: str) -> None:
    shape = {"succeeded": short, "failed": failing, "abandoned": holding}[end]()
    automation_id = await limited(engine, shape)
    # In one transaction, so that the first has not ended before the second is there.
    async with engine.database.transaction() as work:
        first, second = [(await engine.accept(work, automation_id)).id for _ in range(2)]
    if end == "abandoned":
        await is_waiting(engine, automation_id, first)
        async with engine.database.transaction() as work:
            assert await execution.abandon(work, first, RunStatus.FAILED, "Gone.")
        await is_waiting(engine, automation_id, second)
        await engine.cancel(automation_id, second)
    else:
        assert (await engine.ended(automation_id, first)).status == end
        assert (await engine.ended(automation_id, second)).status == end
    # In the transaction of the end, which began before the end was written.
    admitted_at = (await row(engine, second)).admitted_at
    completed_at = (await row(engine, first)).completed_at
    assert admitted_at is not None
    assert completed_at is not None
    assert admitted_at <= completed_at


@pytest.mark.long
async def test_tests_need_no_slot(engine: Engine) -> None:
    automation_id = await limited(engine, short(), policy="skip")
    held = await limited(engine, holding(), policy="skip")
    first = await engine.start(held)
    assert (await engine.test(automation_id)).status == "succeeded"
    async with engine.database.transaction() as work:
        test = await commands.test_run(work, engine.actor, held, Body())
    await is_waiting(engine, held, test.id)
    assert (await row(engine, test.id)).concurrency_key is None
    for run_id in (first, test.id):
        await engine.cancel(held, run_id)


async def test_a_key_that_cannot_be_read_is_reported(engine: Engine) -> None:
    automation_id = await limited(engine, short(), keyExpression="trigger.customer")
    with pytest.raises(ConcurrencyKeyError):
        await engine.start(automation_id, {})
    accepted = await trigger(engine, automation_id)
    run = await engine.ended(automation_id, accepted.run_id)
    assert run.status == "failed"
    assert run.error
    assert run.error.startswith("The automation's concurrency key is invalid")
    assert run.node_runs == []


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("trigger.", "unexpected '.'"),
        ("nodes.a.x", "only trigger"),
        ("run.id", "only trigger"),
        ("trigger.a + .item.x", "only trigger"),
    ],
)
def test_a_key_that_never_works_is_not_published(expression: str, words: str) -> None:
    problem = early_problem(expression)
    assert problem
    assert words.lower() in problem.lower()


@pytest.mark.parametrize(
    "expression",
    [
        "trigger.run",
        "trigger.nodes[0]",
        "{'k': trigger.a}",
        "trigger.?item.orValue('none')",
        "trigger.items.exists(item, item.vip)",
    ],
)
def test_fields_may_be_called_like_variables(expression: str) -> None:
    assert early_problem(expression) is None


@pytest.mark.long
async def test_a_hundred_at_once_never_hold_more_than_there_are(engine: Engine) -> None:
    automation_id = await limited(engine, short(), limit=3)
    counts: list[int] = []
    over = asyncio.Event()

    async def watch() -> None:
        statement = select(func.count()).where(
            automation_run.c.automation_id == automation_id,
            automation_run.c.status.in_(OPEN_RUN),
            automation_run.c.admitted_at.is_not(None),
        )
        while not over.is_set():
            async with engine.database.transaction() as work:
                counts.append(await work.scalar(statement))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    accepted = await asyncio.gather(*(engine.start(automation_id) for _ in range(100)))

    async def all_ended() -> bool:
        async with engine.database.transaction() as work:
            ended = await work.scalar(
                select(func.count()).where(
                    automation_run.c.automation_id == automation_id,
                    automation_run.c.status == RunStatus.SUCCEEDED,
                )
            )
        return bool(ended == len(accepted))

    await eventually(all_ended, what="the end of a hundred runs")
    over.set()
    await watching
    assert max(counts) == 3


@pytest.mark.long
async def test_a_run_that_would_wait_for_itself_is_refused(engine: Engine) -> None:
    outer = await limited(engine, short())
    inner = await engine.publish(
        graph(node("back", "call_automation", automationId=str(outer))),
        triggerConfig={"kind": "automation_called"},
    )
    shape = graph(node("there", "call_automation", automationId=str(inner.id)))
    async with engine.database.transaction() as work:
        body = UpdateAutomation.model_validate({"graph": shape})
        await automations.update_automation(work, engine.actor, KEYS, outer, body)
    async with engine.database.transaction() as work:
        every = PublishAutomation.model_validate({})
        await automations.publish(work, engine.actor, KEYS, outer, every)
    run = await engine.ended(outer, await engine.start(outer))
    assert run.status == "failed"
    async with engine.database.transaction() as work:
        called = await work.first(
            select(automation_run.c.error).where(automation_run.c.parent_run_id == run.id)
        )
    assert called is not None
    assert "Deadlock" in called.error


async def test_a_run_that_would_displace_its_caller_is_refused(engine: Engine) -> None:
    itself = {"type": "trigger", "value": "self"}
    call = held("again", "call_automation", {"automationId": itself})
    automation_id = await limited(engine, graph(call), policy="cancel_oldest")
    run_id = await engine.start(automation_id, {"self": str(automation_id)})
    run = await engine.ended(automation_id, run_id)
    assert run.status == "failed"
    assert run.error
    assert "would replace the run that calls it" in run.error
    async with engine.database.transaction() as work:
        called = select(automation_run.c.id).where(automation_run.c.parent_run_id == run_id)
        assert not await work.rows(called)


def calling(automation_id: UUID) -> Json:
    """A graph whose runs wait for a run of an automation."""
    return graph(held("call", "call_automation", {"automationId": str(automation_id)}))


async def called_by(engine: Engine, automation_id: UUID, run_id: UUID) -> UUID:
    """The run that a run waits for, once it waits itself."""
    await is_waiting(engine, automation_id, run_id)
    async with engine.database.transaction() as work:
        called = select(automation_run).where(automation_run.c.parent_run_id == run_id)
        child = await work.first(called)
    assert child is not None
    await is_waiting(engine, child.automation_id, child.id)
    return UUID(str(child.id))


@pytest.mark.long
async def test_a_call_and_the_cancel_of_its_run_do_not_wait_for_each_other(
    engine: Engine,
) -> None:
    inner = await limited(engine, holding())
    outer = (await engine.publish(calling(inner))).id
    run_id = await engine.start(outer)
    await called_by(engine, outer, run_id)
    async with engine.database.transaction() as work:
        header = await load_header(work, run_id)
        assert header is not None
        await pass_gate(work, run_id, "other", "")
        cancelling = asyncio.create_task(engine.cancel(outer, run_id))
        await asyncio.sleep(0.3)
        await accept_call(work, Call(header, "other", "", inner, {}, waits=True))
    assert (await cancelling).status == "cancelled"
    async with engine.database.transaction() as work:
        called = select(automation_run.c.status).where(automation_run.c.parent_run_id == run_id)
        assert [row.status for row in await work.rows(called)] == ["cancelled", "cancelled"]


@pytest.mark.long
async def test_the_end_of_a_run_and_its_cancel_do_not_wait_for_each_other(
    engine: Engine,
) -> None:
    """Whichever key comes first in the order of their locks."""
    for _ in range(4):
        inner = await limited(engine, holding())
        outer = await limited(engine, calling(inner))
        run_id = await engine.start(outer)
        child_id = await called_by(engine, outer, run_id)
        async with engine.database.transaction() as work:
            await slots.lock_of_runs(work, [run_id])
            cancelling = asyncio.create_task(engine.cancel(outer, run_id))
            await asyncio.sleep(0.3)
            await execution.abandon(work, run_id, RunStatus.FAILED, "It had to.")
        assert (await cancelling).status == "failed"
        assert (await row(engine, child_id)).status == "cancelled"


async def test_a_call_waits_for_a_slot_that_others_hold_beside_its_caller(engine: Engine) -> None:
    automation_id = await limited(engine, holding(), limit=2)
    first, second = [await engine.start(automation_id) for _ in range(2)]

    # The second run led to the call, too, but waits for nothing.
    request = RunRequest(
        RunSource.AUTOMATION,
        {},
        parent_run_id=first,
        chain=(second, first),
        started_by_caller=True,
    )
    async with engine.database.transaction() as work:
        version = await runnable_versions.live(work, engine.actor.workspace_id, automation_id)
        called = (await accept(work, engine.actor, version, request)).run_id
    assert (await row(engine, called)).admitted_at is None
    await engine.cancel(automation_id, second)
    assert (await row(engine, called)).admitted_at is not None
    await engine.cancel(automation_id, first)
    assert (await row(engine, called)).status == "cancelled"
