"""Delays: how long, in which timezone, and when a run counts as waiting."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from models.automation.automation_runs.shapes import AutomationRunDetail
from tests.support.endpoint import Serve, once, reply
from tests.support.engine import Engine, by_node, graph, node
from tests.support.patience import ENOUGH
from tests.support.run_rows import error_codes, states

Json = dict[str, Any]


def due(run: AutomationRunDetail, node_id: str = "wait") -> datetime:
    (wait,) = [one for one in run.metadata["waiting"] if one["nodeId"] == node_id]
    assert wait["reason"] == "delay"
    return datetime.fromisoformat(wait["until"])


@pytest.mark.long
async def test_a_delay_of_thirty_days_passes(skipping_engine: Engine) -> None:
    run = await skipping_engine.run(
        graph(
            node("wait", "delay", seconds=30 * 86_400),
            node("after", "transform", output={"ok": True}),
            edges=[("wait", "after")],
        )
    )
    assert (run.status, run.output) == ("succeeded", {"after": {"ok": True}})
    assert by_node(run)["wait"].output == {}


@pytest.mark.long
async def test_waits_of_different_lengths_end_in_order(skipping_engine: Engine) -> None:
    run = await skipping_engine.run(
        graph(
            node("long", "delay", seconds=7_200),
            node("short", "delay", seconds=3_600),
            node("first", "transform", output={}),
            node("second", "transform", output={}),
            edges=[("short", "first"), ("long", "second")],
        )
    )
    nodes = by_node(run)
    assert run.status == "succeeded", run.error
    assert nodes["first"].completed_at <= nodes["second"].completed_at
    assert nodes["short"].completed_at < nodes["long"].completed_at


@pytest.mark.long
async def test_a_run_is_waiting_exactly_while_only_waits_are_open(
    engine: Engine, serve: Serve
) -> None:
    seen_running = {"call": asyncio.Event(), "slow": asyncio.Event()}
    call, slow = [await serve(once(seen, reply())) for seen in seen_running.values()]
    automation = await engine.publish(
        graph(
            node("wait", "delay", seconds=5),
            node("call", "http_request", url=call.url),
            node("slow", "http_request", url=slow.url),
            edges=[("wait", "slow")],
        )
    )
    run_id = await engine.start(automation.id)
    seen: list[tuple[str, dict[str, str]]] = []
    async with asyncio.timeout(ENOUGH):
        while not seen or seen[-1][0] not in {"succeeded", "failed"}:
            run = await engine.get(automation.id, run_id)
            if not seen or seen[-1] != (run.status, states(run)):
                seen.append((run.status, states(run)))
            for name, event in seen_running.items():
                if states(run).get(name) == "running":
                    event.set()
            await asyncio.sleep(0.02)
    steps = [status for status, _ in seen]
    assert [one for n, one in enumerate(steps) if n == 0 or steps[n - 1] != one][-4:] == [
        "running",
        "waiting",
        "running",
        "succeeded",
    ]
    for status, nodes in seen:
        if status == "waiting":
            assert nodes == {"wait": "waiting", "call": "succeeded"}
        if nodes.get("call") == "running" or nodes.get("slow") == "running":
            assert status == "running"


@pytest.mark.long
async def test_a_waiting_run_shows_what_it_will_not_come_to(engine: Engine) -> None:
    other = await engine.publish(graph(node("pause", "delay", seconds=600)))
    for waits in (
        node("wait", "delay", seconds=600),
        node("wait", "call_automation", automationId=str(other.id)),
    ):
        content = graph(
            node("check", "condition", expression="false"),
            node("dead", "transform", output={}),
            node("after", "transform", output={}),
            waits,
            edges=[("check", "dead", "true"), ("dead", "after"), ("check", "wait", "false")],
        )
        automation = await engine.publish(content)
        run_id = await engine.start(automation.id)
        run = await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
        assert states(run) == {
            "check": "succeeded", "wait": "waiting", "dead": "skipped", "after": "skipped",
        }  # fmt: skip
        ended = await engine.cancel(automation.id, run_id)
        assert states(ended)["dead"] == "skipped"


@pytest.mark.long
async def test_a_run_waits_until_a_moment(engine: Engine) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=1.5)
    run = await engine.run(
        graph(node("wait", "delay", until={"type": "trigger", "value": "at"})),
        {"at": moment.isoformat()},
    )
    assert run.status == "succeeded", run.error
    assert by_node(run)["wait"].completed_at >= moment - timedelta(milliseconds=50)


async def test_a_moment_without_offset_is_read_in_the_timezone(engine: Engine) -> None:
    local = datetime.now(ZoneInfo("Asia/Tokyo")) + timedelta(hours=1)
    automation = await engine.publish(
        graph(
            node(
                "wait",
                "delay",
                until=local.replace(tzinfo=None).isoformat(),
                timezone="Asia/Tokyo",
            )
        )
    )
    run_id = await engine.start(automation.id)
    run = await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    assert abs(due(run) - local) < timedelta(seconds=1)
    await engine.cancel(automation.id, run_id)


@pytest.mark.long
@pytest.mark.parametrize("config", [{"seconds": 0}, {"until": "2001-01-01T00:00:00Z"}])
async def test_a_wait_that_is_over_already(engine: Engine, config: Json) -> None:
    run = await engine.run(graph(node("wait", "delay", **config)))
    assert (run.status, states(run)) == ("succeeded", {"wait": "succeeded"})


@pytest.mark.parametrize(
    ("config", "code", "told"),
    [
        (
            {"until": {"type": "trigger", "value": "soon"}},
            "binding_error",
            "until: is not an ISO 8601 timestamp",
        ),
        (
            {"seconds": {"type": "trigger", "value": "none"}},
            "binding_error",
            "needs either seconds or until",
        ),
        ({"until": "2999-01-01T00:00:00Z"}, "validation_error", ""),
    ],
)
async def test_a_wait_that_cannot_be_fails(
    engine: Engine, config: Json, code: str, told: str
) -> None:
    run = await engine.run(graph(node("wait", "delay", **config)), {"soon": "soon"})
    assert (run.status, await error_codes(engine, run)) == ("failed", {"wait": code})
    assert run.error is not None
    assert run.error.startswith(f"wait: {told}")


async def test_other_branches_continue_beside_a_wait(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            node("wait", "delay", seconds=600),
            node("a", "transform", output={}),
            node("b", "transform", output={}),
            edges=[("a", "b")],
        )
    )
    run_id = await engine.start(automation.id)
    run = await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    assert states(run) == {"wait": "waiting", "a": "succeeded", "b": "succeeded"}
    assert run.metadata["progress"] == {"done": 2, "total": 3}
    await engine.cancel(automation.id, run_id)
