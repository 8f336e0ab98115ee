"""Running a run again: everything, or what failed and what follows it (interface.md#runs-again)."""

from typing import Any

import pytest

from models.automation.automation_runs import retries
from models.automation.automation_runs.shapes import AutomationRunDetail, RetryRun
from models.core.base import Id
from runtime.errors import RunError
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine, Json, by_node, graph, node
from tests.support.run_rows import states


async def retry(
    engine: Engine, automation_id: Id, run_id: Id, /, **body: Any
) -> AutomationRunDetail:
    """Retry and wait for the end; `from_` stands for `from`."""
    run = await retry_only(engine, automation_id, run_id, **body)
    return await engine.ended(automation_id, run.id)


async def retry_only(
    engine: Engine, automation_id: Id, run_id: Id, /, **body: Any
) -> AutomationRunDetail:
    given = {name.rstrip("_"): value for name, value in body.items()}
    async with engine.database.transaction() as work:
        return await retries.retry(
            work, engine.actor, automation_id, run_id, RetryRun.model_validate(given)
        )


def output(node_id: str, **values: Any) -> Json:
    return node(node_id, "transform", output=values)


def calling(url: str) -> Json:
    """A node before, a call that may fail, and a node that reads both."""
    return graph(
        output("before", number={"type": "trigger", "value": "number"}),
        node("call", "http_request", method="GET", url=url),
        output(
            "after",
            number={"type": "node", "value": "before.number"},
            status={"type": "node", "value": "call.status"},
        ),
        edges=[("before", "call"), ("call", "after")],
    )


async def test_a_retry_from_failed_runs_what_failed_and_what_follows(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(400), reply(200, {}))
    automation = await engine.publish(calling(endpoint.url))
    run_id = await engine.start(automation.id, {"number": 7})
    failed = await engine.ended(automation.id, run_id)
    assert states(failed) == {"before": "succeeded", "call": "failed"}
    run = await retry(engine, automation.id, run_id, from_="failed")
    assert (run.status, run.source) == ("succeeded", "replay")
    assert run.replay_of_run_id == run_id
    assert run.trigger_payload == {"number": 7}
    assert states(run) == {"before": "skipped", "call": "succeeded", "after": "succeeded"}
    assert by_node(run)["before"].metadata == {"reused": True}
    assert run.output == {"after": {"number": 7, "status": 200}}
    assert run.metadata["progress"] == {"done": 3, "total": 3}
    assert len(endpoint.requests) == 2
    assert (await engine.get(automation.id, run_id)).status == "failed"


@pytest.mark.long
async def test_a_retry_of_a_retry_still_knows_what_was_done(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(400), reply(404), reply(200, {}))
    automation = await engine.publish(calling(endpoint.url))
    run_id = await engine.start(automation.id, {"number": 7})
    await engine.ended(automation.id, run_id)
    second = await retry(engine, automation.id, run_id)
    assert second.status == "failed"
    third = await retry(engine, automation.id, second.id)
    assert third.output == {"after": {"number": 7, "status": 200}}
    assert third.replay_of_run_id == second.id


@pytest.mark.long
async def test_a_retry_from_start_repeats_everything(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(400), reply(200, {}))
    automation = await engine.publish(calling(endpoint.url))
    run_id = await engine.start(automation.id, {"number": 7})
    await engine.ended(automation.id, run_id)
    run = await retry(engine, automation.id, run_id, from_="start")
    assert states(run) == dict.fromkeys(("before", "call", "after"), "succeeded")
    again = await retry(engine, automation.id, run.id, from_="start")
    assert again.output == run.output


def forked(url: str, *, on_error: str = "stop") -> Json:
    """A condition whose one branch calls, beside a branch that ends by itself."""
    shape = graph(
        node("ask", "condition", expression="trigger.ask"),
        node("call", "http_request", method="GET", url=url),
        output("yes", said="yes"),
        output("no", said="no"),
        output("beside", said="beside"),
        node("all", "join", mode="all"),
        edges=[
            ("ask", "call", "true"),
            ("ask", "no", "false"),
            ("call", "yes"),
            ("call", "no", "failure"),
            ("yes", "all"),
            ("no", "all"),
            ("beside", "all"),
        ],
    )
    return {**shape, "onError": on_error}


async def test_a_branch_not_taken_is_not_taken_again(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    shape = forked(endpoint.url)
    shape["nodes"].append(node("fall", "http_request", method="GET", url=f"{endpoint.url}/x"))
    shape["edges"].append({"from": "all", "to": "fall"})
    failing = await serve(reply(400), reply(200, {}))
    shape["nodes"][-1]["config"]["url"] = failing.url
    automation = await engine.publish(shape)
    run_id = await engine.start(automation.id, {"ask": True})
    failed = await engine.ended(automation.id, run_id)
    assert states(failed)["no"] == "skipped"
    run = await retry(engine, automation.id, run_id)
    assert run.status == "succeeded"
    assert states(run) == {
        **dict.fromkeys(("ask", "call", "yes", "no", "beside", "all"), "skipped"),
        "fall": "succeeded",
    }
    assert len(endpoint.requests) == 1


async def test_a_failure_that_an_edge_handled_stands(engine: Engine, serve: Serve) -> None:
    handled = await serve(reply(400))
    failing = await serve(reply(400), reply(200, {}))
    shape = graph(
        node("first", "http_request", method="GET", url=handled.url),
        output("rescue", said="rescued"),
        node("second", "http_request", method="GET", url=failing.url),
        edges=[("first", "rescue", "failure"), ("rescue", "second")],
    )
    automation = await engine.publish(shape)
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    run = await retry(engine, automation.id, run_id)
    assert run.status == "succeeded"
    assert states(run) == {"first": "skipped", "rescue": "skipped", "second": "succeeded"}
    assert len(handled.requests) == 1


@pytest.mark.long
async def test_a_failure_that_stands_can_be_read_and_is_no_output(
    engine: Engine, serve: Serve
) -> None:
    handled = await serve(reply(400))
    failing = await serve(reply(400), reply(200, {}))
    shape = graph(
        node("first", "http_request", method="GET", url=handled.url),
        node("off", "transform", output={}, disabled=True),
        node("second", "http_request", method="GET", url=failing.url),
        output("after", said={"type": "node", "value": "first.error"}),
        edges=[("first", "off", "failure"), ("second", "after")],
    )
    automation = await engine.publish(shape | {"onError": "continue"})
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    run = await retry(engine, automation.id, run_id)
    assert (run.status, run.output) == (
        "succeeded",
        {"after": {"said": "The server returned 400."}},
    )


async def test_every_failed_node_is_run_again(engine: Engine, serve: Serve) -> None:
    one = await serve(reply(400), reply(200, {}))
    two = await serve(reply(400), reply(200, {}))
    shape = graph(
        node("one", "http_request", method="GET", url=one.url),
        node("two", "http_request", method="GET", url=two.url),
        output("good", said="good"),
        node("all", "join", mode="all"),
        edges=[("one", "all"), ("two", "all"), ("good", "all")],
    )
    automation = await engine.publish({**shape, "onError": "continue"})
    run_id = await engine.start(automation.id)
    failed = await engine.ended(automation.id, run_id)
    assert (states(failed)["one"], states(failed)["two"]) == ("failed", "failed")
    run = await retry(engine, automation.id, run_id)
    assert run.status == "succeeded"
    assert states(run) == {
        "one": "succeeded",
        "two": "succeeded",
        "good": "skipped",
        "all": "succeeded",
    }


@pytest.mark.long
async def test_an_interrupted_run_continues(engine: Engine) -> None:
    shape = graph(
        output("before", number=1),
        node("pause", "delay", seconds={"type": "trigger", "value": "seconds"}),
        output("after", number={"type": "node", "value": "before.number"}),
        edges=[("before", "pause"), ("pause", "after")],
    )
    automation = await engine.publish(shape)
    run_id = await engine.start(automation.id, {"seconds": 3_600})
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    with pytest.raises(RunError):
        await retry_only(engine, automation.id, run_id)
    run = await retry_only(engine, automation.id, run_id, cancelFirst=True)
    assert (await engine.get(automation.id, run_id)).status == "cancelled"
    await engine.until(automation.id, run.id, lambda run: run.status == "waiting")
    waiting = await engine.get(automation.id, run.id)
    assert states(waiting) == {"before": "skipped", "pause": "waiting"}
    await engine.cancel(automation.id, run.id)


async def test_outputs_of_reused_leaves_are_the_runs_own(engine: Engine, serve: Serve) -> None:
    failing = await serve(reply(400), reply(200, {}))
    shape = graph(
        output("leaf", number=1),
        node("call", "http_request", method="GET", url=failing.url),
        output("other", number=2),
        edges=[("call", "other")],
    )
    automation = await engine.publish({**shape, "onError": "continue"})
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    run = await retry(engine, automation.id, run_id)
    assert run.output == {"leaf": {"number": 1}, "other": {"number": 2}}


async def test_a_run_that_succeeded_has_nothing_to_retry(engine: Engine) -> None:
    automation = await engine.publish(graph(output("only", ok=True)))
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    with pytest.raises(RunError):
        await retry_only(engine, automation.id, run_id, from_="failed")
    assert (await retry(engine, automation.id, run_id, from_="start")).status == "succeeded"


@pytest.mark.long
async def test_the_version_of_then_or_of_now(engine: Engine) -> None:
    def stopping(message: str) -> Json:
        return graph(
            output("before", ok=True),
            node("stop", "stop", result="failed", message=message),
            edges=[("before", "stop")],
        )

    automation = await engine.publish(stopping("then"))
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    with pytest.raises(RunError):
        await retry_only(engine, automation.id, run_id, version="draft")
    await engine.change(automation.id, graph=stopping("draft"))
    await engine.change(automation.id, enabled=False)
    errors = {
        version: (await retry(engine, automation.id, run_id, version=version)).error
        for version in ("original", "published", "draft")
    }
    assert errors == {"original": "stop: then", "published": "stop: then", "draft": "stop: draft"}


@pytest.mark.long
async def test_a_mended_node_ends_the_run_well(engine: Engine) -> None:
    def last(value: Any) -> Json:
        return graph(
            output("before", number=1),
            node("last", "condition", expression=value),
            edges=[("before", "last")],
        )

    automation = await engine.publish(last("trigger.absent == 1"))
    run_id = await engine.start(automation.id)
    assert (await engine.ended(automation.id, run_id)).status == "failed"
    await engine.change(automation.id, graph=last("nodes.before.number == 1"))
    run = await retry(engine, automation.id, run_id, version="draft")
    assert run.status == "succeeded"
    assert states(run) == {"before": "skipped", "last": "succeeded"}


async def test_a_test_run_again_keeps_its_mocks(engine: Engine) -> None:
    shape = graph(
        output("mocked", number=1),
        output("after", number={"type": "node", "value": "mocked.number"}),
        edges=[("mocked", "after")],
    )
    automation = await engine.publish(shape)
    run = await engine.test(automation.id, mocks={"mocked": {"number": 2}})
    assert run.output == {"after": {"number": 2}}
    again = await retry(engine, automation.id, run.id, from_="start")
    assert again.output == {"after": {"number": 2}}


async def test_a_retry_of_a_run_from_a_node_begins_there(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200), reply(400), reply(200, {}))
    automation = await engine.publish(calling(endpoint.url))
    first = await engine.ended(automation.id, await engine.start(automation.id, {"number": 7}))
    second = await engine.from_node(automation.id, nodeId="call", replayOfRunId=str(first.id))
    assert second.status == "failed"
    third = await retry(engine, automation.id, second.id)
    assert states(third) == {"before": "skipped", "call": "succeeded", "after": "succeeded"}
    assert third.start_node_id == "call"
    assert third.output == {"after": {"number": 7, "status": 200}}
