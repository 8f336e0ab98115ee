"""Test runs, runs from a node, and which version a run executes."""

import itertools
from typing import Any

import pytest

from models.automation.automation_runs import commands as runs
from models.automation.automation_runs import shapes
from models.automation.automation_runs.rules import RunSource
from models.automation.automations import commands
from models.automation.automations.shapes import UpdateAutomation
from models.core.base import Id
from runtime.errors import RunError, ValidationError
from tests.support.endpoint import Serve, reply
from tests.support.engine import KEYS, Engine, by_node, graph, node
from tests.support.run_rows import states

Json = dict[str, Any]


def binding(type_: str, value: Any) -> Json:
    return {"type": type_, "value": value}


def step(id_: str, value: Any = None) -> Json:
    return node(id_, "transform", output={"v": id_ if value is None else value})


def chain(*nodes: Json) -> Json:
    ids = [one["id"] for one in nodes]
    return graph(*nodes, edges=list(itertools.pairwise(ids)))


async def edit(engine: Engine, automation_id: Id, **changes: Any) -> Any:
    async with engine.database.transaction() as work:
        return await commands.update_automation(
            work, engine.actor, KEYS, automation_id, UpdateAutomation.model_validate(changes)
        )


async def test_a_test_run_takes_the_draft_of_a_disabled_automation(engine: Engine) -> None:
    automation_id = await engine.draft(chain(step("draft")))
    run = await engine.test(automation_id)
    assert (run.status, run.source) == ("succeeded", RunSource.TEST)
    assert run.output == {"draft": {"v": "draft"}}


async def test_a_test_run_takes_the_draft_before_the_published_version(engine: Engine) -> None:
    automation = await engine.publish(chain(step("published")))
    assert (await engine.test(automation.id)).output == {"published": {"v": "published"}}
    changed = await edit(engine, automation.id, graph=chain(step("draft")))
    tested = await engine.test(automation.id)
    assert tested.output == {"draft": {"v": "draft"}}
    assert tested.automation_version_id == changed.draft_version_id
    named = await engine.test(
        automation.id, automationVersionId=str(automation.published_version_id)
    )
    assert named.output == {"published": {"v": "published"}}
    run = await engine.ended(automation.id, await engine.start(automation.id))
    assert run.output == {"published": {"v": "published"}}
    assert run.automation_version_id == automation.published_version_id


async def test_a_run_keeps_the_graph_it_was_accepted_with(engine: Engine) -> None:
    automation_id = await engine.draft(
        graph(node("wait", "delay", seconds=0.5), step("old"), edges=[("wait", "old")])
    )
    async with engine.database.transaction() as work:
        accepted = await runs.test_run(work, engine.actor, automation_id, shapes.TestRun())
    await edit(engine, automation_id, graph=chain(step("new")))
    run = await engine.ended(automation_id, accepted.id)
    assert run.output == {"old": {"v": "old"}}


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ({}, {"from": "first"}),
        ({"testPayloadId": "second"}, {"from": "second"}),
        ({"payload": {"from": "body"}}, {"from": "body"}),
        ({"triggerPayload": {"from": "body"}, "testPayloadId": "second"}, {"from": "body"}),
        ({"payload": {}}, {}),
    ],
)
async def test_a_test_run_gets_its_payload(engine: Engine, body: Json, seen: Json) -> None:
    shape = chain(step("see", binding("expression", "trigger")))
    payloads = [
        {"id": name, "name": name, "payload": {"from": name}} for name in ("first", "second")
    ]
    automation_id = await engine.draft({**shape, "testPayloads": payloads})
    run = await engine.test(automation_id, **body)
    assert run.output == {"see": {"v": seen}}
    assert run.trigger_payload == seen


async def test_mocks_stand_for_nodes(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply())
    mocked = {"status": 200, "body": {"name": "mocked"}}
    automation_id = await engine.draft(
        graph(
            node("call", "http_request", url=endpoint.url, method="POST"),
            node("check", "condition", expression="false"),
            node("pick", "switch", cases=[{"key": "a", "expression": "false"}]),
            node("wait", "delay", seconds=600),
            node("own", "transform", output={}, mock={"enabled": True, "output": {"own": 1}}),
            node("off", "transform", output={"x": 1}, mock={"enabled": False, "output": {}}),
            step("end", binding("node", "call.body.name")),
            edges=[
                ("call", "check"),
                ("check", "pick", "true"),
                ("pick", "wait", "case", "a"),
                ("wait", "end"),
            ],
        )
    )
    mocks = {
        "call": mocked,
        "check": {"result": True},
        "pick": {"case": "a"},
        "wait": {"waited": "not at all"},
    }
    run = await engine.test(automation_id, mocks=mocks)
    assert run.status == "succeeded", run.error
    assert run.output == {"end": {"v": "mocked"}, "own": {"own": 1}, "off": {"x": 1}}
    assert by_node(run)["wait"].output == {"waited": "not at all"}
    assert endpoint.requests == []


async def test_a_mock_that_chooses_no_case_fails_its_node(engine: Engine) -> None:
    pick = node("pick", "switch", cases=[{"key": "a", "expression": "true"}])
    automation_id = await engine.draft(graph(pick))
    run = await engine.test(automation_id, mocks={"pick": {"case": {"key": "a"}}})
    assert run.error == "pick: The case of the mock must be the key of a case."


async def test_mocks_are_for_test_runs_alone(engine: Engine) -> None:
    run = await engine.run(
        graph(node("own", "transform", output={}, mock={"enabled": True, "output": {"own": 1}}))
    )
    assert run.output == {"own": {}}


async def test_a_simulation_leaves_no_trace(engine: Engine, serve: Serve, table: Id) -> None:
    endpoint = await serve(reply())
    automation_id = await engine.draft(
        graph(
            node("call", "http_request", url=endpoint.url, method="POST"),
            node("make", "create_record", databaseId=str(table), data={"code": "A"}),
            node("find", "query_records", databaseId=str(table)),
            edges=[("make", "find")],
        )
    )
    run = await engine.test(automation_id, simulate=True)
    nodes = by_node(run)
    assert nodes["call"].output == nodes["make"].output == {"simulated": True}
    assert nodes["find"].output["count"] == 0
    assert endpoint.requests == []


async def test_a_test_run_stops_at_a_node(engine: Engine) -> None:
    automation_id = await engine.draft(
        graph(
            step("a"),
            step("b"),
            step("c"),
            step("beside"),
            edges=[("a", "b"), ("b", "c"), ("a", "beside")],
        )
    )
    run = await engine.test(automation_id, stopAtNodeId="b")
    assert (run.status, states(run)) == ("succeeded", {"a": "succeeded", "b": "succeeded"})
    assert run.output == {"b": {"v": "b"}}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"stopAtNodeId": "none"}, "stopAtNodeId"),
        ({"testPayloadId": "none"}, "testPayloadId"),
        ({"mocks": {"none": {}}}, "mocks.none"),
    ],
)
async def test_unknown_options_of_a_test_run_are_refused(
    engine: Engine, body: Json, path: str
) -> None:
    automation_id = await engine.draft(chain(step("a")))
    with pytest.raises(ValidationError) as refused:
        await engine.test(automation_id, **body)
    assert [detail.path for detail in refused.value.details] == [path]


async def test_a_run_from_a_node_reuses_what_the_replayed_run_computed(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            step("up", binding("trigger", "n")),
            step("side", "side"),
            step("mid", binding("expression", "nodes.up.v + 1")),
            step("low", binding("expression", "[nodes.up.v, nodes.mid.v]")),
            edges=[("up", "mid"), ("mid", "low"), ("side", "mid")],
        )
    )
    first = await engine.ended(automation.id, await engine.start(automation.id, {"n": 5}))
    again = await engine.from_node(automation.id, nodeId="mid", replayOfRunId=str(first.id))
    assert (again.status, again.source) == ("succeeded", RunSource.FROM_NODE)
    assert (again.start_node_id, again.replay_of_run_id) == ("mid", first.id)
    assert again.trigger_payload == {"n": 5}
    assert again.output == {"low": {"v": [5, 6]}}
    nodes = by_node(again)
    for reused in ("up", "side"):
        assert nodes[reused].status == "skipped"
        assert nodes[reused].metadata == {"reused": True}
        assert nodes[reused].output is None
    assert nodes["mid"].metadata == {}
    # What a replay reused, its own replay reuses too.
    third = await engine.from_node(automation.id, nodeId="low", replayOfRunId=str(again.id))
    assert third.output == {"low": {"v": [5, 6]}}


async def test_in_a_run_from_a_node_without_a_replay_upstream_is_null(engine: Engine) -> None:
    automation = await engine.publish(
        chain(step("up"), step("low", {"a": binding("node", "up.v"), "b": binding("trigger", "n")}))
    )
    run = await engine.from_node(automation.id, nodeId="low", triggerPayload={"n": 1})
    assert run.output == {"low": {"v": {"a": None, "b": 1}}}


async def test_an_expression_may_ask_for_what_is_missing(engine: Engine) -> None:
    automation = await engine.publish(
        chain(step("up"), step("low", binding("expression", "has(nodes.up) ? 'some' : 'none'")))
    )
    run = await engine.from_node(automation.id, nodeId="low")
    assert run.output == {"low": {"v": "none"}}, run.error


async def test_pinned_outputs_win(engine: Engine) -> None:
    automation = await engine.publish(
        chain(
            step("up"), step("mid", binding("node", "up.v")), step("low", binding("node", "mid.v"))
        )
    )
    first = await engine.ended(automation.id, await engine.start(automation.id))
    run = await engine.from_node(
        automation.id, nodeId="mid", replayOfRunId=str(first.id), nodes={"up": {"v": "pinned"}}
    )
    assert run.output == {"low": {"v": "pinned"}}


async def test_nodes_as_an_array_restrict_the_run(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            step("a"),
            step("b"),
            step("c"),
            step("d"),
            edges=[("a", "b"), ("b", "c"), ("b", "d")],
        )
    )
    run = await engine.from_node(automation.id, nodeId="b", nodes=["b", "d"])
    assert run.status == "succeeded", run.error
    assert states(run) == {"a": "skipped", "b": "succeeded", "c": "skipped", "d": "succeeded"}


async def test_scope_gives_the_binding_context(engine: Engine) -> None:
    values = {
        "item": binding("item", "name"),
        "index": binding("item", "$index"),
        "trigger": binding("trigger", "n"),
        "vars": binding("expression", "vars.colour + string(index)"),
    }
    automation = await engine.publish(chain(step("see", values)))
    scope = {
        "trigger": {"n": 9},
        "item": {"name": "Ada"},
        "index": 3,
        "variables": {"colour": "red"},
    }
    run = await engine.from_node(automation.id, nodeId="see", scope=scope)
    assert run.output == {
        "see": {"v": {"item": "Ada", "index": 3, "trigger": 9, "vars": "red3"}}
    }, run.error


async def test_a_join_after_the_start_counts_edges_from_outside(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            step("left"),
            step("right"),
            node("meet", "join", mode="count", count=2),
            step("end"),
            edges=[("left", "meet"), ("right", "meet"), ("meet", "end")],
        )
    )
    run = await engine.from_node(automation.id, nodeId="right")
    assert run.output == {"end": {"v": "end"}}
    assert states(run)["left"] == "skipped"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"nodeId": "none"}, "nodeId"),
        ({"nodeId": "a", "nodes": ["a", "none"]}, "nodes.1"),
        ({"nodeId": "a", "nodes": {"none": {}}}, "nodes.none"),
        ({"nodeId": "a", "scope": "loop:1"}, "scope"),
    ],
)
async def test_unknown_options_of_a_run_from_a_node_are_refused(
    engine: Engine, body: Json, path: str
) -> None:
    automation = await engine.publish(chain(step("a")))
    with pytest.raises(ValidationError) as refused:
        await engine.from_node(automation.id, **body)
    assert [detail.path for detail in refused.value.details] == [path]


async def test_a_named_version_runs_even_when_disabled(engine: Engine) -> None:
    automation = await engine.publish(chain(step("a")))
    version_id = str(automation.published_version_id)
    await edit(engine, automation.id, enabled=False)
    with pytest.raises(RunError):
        await engine.start(automation.id)
    with pytest.raises(RunError):
        await engine.from_node(automation.id, nodeId="a")
    run = await engine.from_node(automation.id, nodeId="a", automationVersionId=version_id)
    assert run.status == "succeeded"
