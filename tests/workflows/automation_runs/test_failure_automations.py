"""What a failed run sets off: its failure automation, an event, a notification."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from models.automation.automation_runs import execution
from models.automation.automation_runs.execution import failure_run_id
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.messages.notifications.queries import notification
from tests.support.engine import Engine, Json, graph, node
from tests.support.incidents import grouped
from tests.support.patience import eventually
from tests.support.run_rows import runs_of

SEEN: Json = {
    name: {"type": "trigger", "value": name}
    for name in ("automationId", "runId", "nodeId", "error", "triggerPayload")
}


def handling() -> Json:
    """A graph whose output is what its trigger said."""
    return graph(node("seen", "transform", output=SEEN))


def failing(handler_id: UUID | None, message: str = "It had to.") -> Json:
    shape = graph(node("fall", "stop", label="Fall", result="failed", message=message))
    return shape if handler_id is None else {**shape, "failureAutomationId": str(handler_id)}


def holding(handler_id: UUID) -> Json:
    shape = graph(node("hold", "delay", seconds=3_600))
    return {**shape, "failureAutomationId": str(handler_id)}


async def handled(engine: Engine, handler_id: UUID, run_id: UUID) -> AutomationRunDetail:
    """The run that handles a failure, once it has ended."""
    return await engine.ended(handler_id, failure_run_id(run_id))


async def notices(engine: Engine, run_id: UUID) -> list[Any]:
    async with engine.database.transaction() as work:
        return list(await work.rows(select(notification).where(notification.c.run_id == run_id)))


async def test_a_failed_run_is_handed_to_its_failure_automation(engine: Engine) -> None:
    handler = await engine.publish(handling())
    automation = await engine.publish(failing(handler.id))
    run_id = await engine.start(automation.id, {"order": 7})
    run = await engine.ended(automation.id, run_id)
    assert (run.status, run.error) == ("failed", "Fall: It had to.")
    assert run.metadata["failureRunId"] == str(failure_run_id(run_id))
    answer = await handled(engine, handler.id, run_id)
    assert (answer.status, answer.source) == ("succeeded", "failure")
    assert answer.metadata["chain"] == [str(run_id)]
    assert answer.output == {
        "seen": {
            "automationId": str(automation.id),
            "runId": str(run_id),
            "nodeId": "fall",
            "error": "Fall: It had to.",
            "triggerPayload": {"order": 7},
        }
    }


async def test_the_creator_of_the_version_is_notified_once(engine: Engine) -> None:
    automation = await engine.publish(failing(None))
    run_id = await engine.start(automation.id)
    run = await engine.ended(automation.id, run_id)
    assert run.metadata.get("failureRunId") is None
    assert await notices(engine, run_id) == [], "its incident tells of it"
    await grouped(engine.database)
    await grouped(engine.database)
    (notice,) = await notices(engine, run_id)
    assert (notice.kind, notice.user_id) == ("automation_failed", engine.actor.user_id)
    assert (notice.body, notice.run_id) == ("Fall: It had to.", run_id)


async def test_automations_that_listen_for_failures_are_started(engine: Engine) -> None:
    automation = await engine.publish(failing(None))
    listens = {"kind": "automation_failed", "automationIds": [str(automation.id)]}
    listener = await engine.publish(handling(), triggerConfig=listens)
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)

    async def has_run() -> bool:
        return bool(await runs_of(engine, listener.id))

    await eventually(has_run, what="the run of the listener")
    (heard,) = await runs_of(engine, listener.id)
    assert (heard.source, heard.chain) == ("failure", [run_id])
    assert heard.trigger_payload["runId"] == str(run_id)
    assert heard.trigger_payload["error"] == "Fall: It had to."


async def test_a_handler_that_listens_too_runs_once(engine: Engine) -> None:
    listens = {"kind": "automation_failed", "automationIds": "any"}
    handler = await engine.publish(handling(), triggerConfig=listens)
    automation = await engine.publish(failing(handler.id))
    other = await engine.publish(handling(), triggerConfig=listens)
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)

    async def was_heard() -> bool:
        return bool(await runs_of(engine, other.id))

    await eventually(was_heard, what="the run of the other listener")
    answer = await handled(engine, handler.id, run_id)
    assert answer.trigger_payload.keys() == SEEN.keys()
    (heard,) = await runs_of(engine, other.id)
    assert heard.trigger_payload == answer.trigger_payload
    assert [run.id for run in await runs_of(engine, handler.id)] == [failure_run_id(run_id)]


@pytest.mark.parametrize("asked", [False, True])
async def test_a_test_is_handled_only_if_it_asks(engine: Engine, *, asked: bool) -> None:
    handler = await engine.publish(handling())
    automation = await engine.publish(failing(handler.id))
    run = await engine.test(automation.id, triggerFailureAutomation=asked)
    assert run.status == "failed"
    assert (run.metadata.get("failureRunId") is not None) is asked
    assert len(await notices(engine, run.id)) == asked
    if asked:
        await handled(engine, handler.id, run.id)


async def test_a_failed_handler_is_not_handled(engine: Engine) -> None:
    last = await engine.publish(handling())
    handler = await engine.publish(failing(last.id))
    automation = await engine.publish(failing(handler.id))
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    answer = await handled(engine, handler.id, run_id)
    assert answer.status == "failed"
    assert answer.metadata.get("failureRunId") is None
    assert await runs_of(engine, last.id) == []
    await grouped(engine.database)
    assert len(await notices(engine, answer.id)) == 1


@pytest.mark.long
async def test_two_that_handle_each_other_do_not_go_in_circles(engine: Engine) -> None:
    first = await engine.publish(failing(None))
    second = await engine.publish(failing(first.id))
    await engine.change(first.id, graph=failing(second.id))
    run = await engine.test(first.id, triggerFailureAutomation=True)
    await handled(engine, second.id, run.id)
    assert len(await runs_of(engine, first.id)) == 1
    assert len(await runs_of(engine, second.id)) == 1


async def test_a_cancelled_run_is_not_handled(engine: Engine) -> None:
    handler = await engine.publish(handling())
    automation = await engine.publish(holding(handler.id))
    run_id = await engine.start(automation.id)
    run = await engine.cancel(automation.id, run_id)
    assert run.metadata.get("failureRunId") is None
    assert await runs_of(engine, handler.id) == []
    assert await notices(engine, run_id) == []


async def test_a_handler_that_is_switched_off_is_left_alone(engine: Engine) -> None:
    handler = await engine.publish(handling())
    automation = await engine.publish(failing(handler.id))
    await engine.change(handler.id, enabled=False)
    run_id = await engine.start(automation.id)
    run = await engine.ended(automation.id, run_id)
    assert (run.status, run.metadata.get("failureRunId")) == ("failed", None)


async def test_a_run_uses_the_handler_it_was_accepted_with(engine: Engine) -> None:
    handler, other = [await engine.publish(handling()) for _ in range(2)]
    automation = await engine.publish(holding(handler.id))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await engine.change(automation.id, graph=holding(other.id))
    async with engine.database.transaction() as work:
        await execution.abandon(work, run_id, RunStatus.TIMED_OUT, "It took too long.")
    answer = await handled(engine, handler.id, run_id)
    assert answer.output
    assert answer.output["seen"]["nodeId"] is None
    assert answer.output["seen"]["error"] == "It took too long."


async def test_a_run_closed_from_several_sides_is_handled_once(engine: Engine) -> None:
    handler = await engine.publish(handling())
    automation = await engine.publish(holding(handler.id))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")

    async def close() -> bool:
        async with engine.database.transaction() as work:
            return await execution.abandon(work, run_id, RunStatus.FAILED, "Gone.")

    closed = await asyncio.gather(*(close() for _ in range(10)))
    assert sum(closed) == 1
    await handled(engine, handler.id, run_id)
    assert len(await runs_of(engine, handler.id)) == 1
    await grouped(engine.database)
    assert len(await notices(engine, run_id)) == 1
