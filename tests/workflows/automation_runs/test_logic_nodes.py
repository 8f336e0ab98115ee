"""Nodes that decide and compute, on the real engine: every outcome, every binding."""

import asyncio
from typing import Any

import pytest
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

import runtime.processes.bounded_processes
from activities.automation_runs.nodes import logic
from models.automation.automations.rules.graph.kinds import NodeKind
from runtime.processes.bounded_processes import _Limits, refuse_beyond
from tests.support.attacks import COMPARED, DOUBLED, FORMULA
from tests.support.engine import Engine, by_node, graph, node
from tests.support.run_rows import error_codes, states

pytestmark = pytest.mark.takes(seconds=15)

Json = dict[str, Any]


def binding(type_: str, value: Any) -> Json:
    return {"type": type_, "value": value}


@pytest.mark.parametrize(
    ("config", "taken", "output"),
    [
        ({"expression": "trigger.n > 3"}, "yes", {"result": True}),
        ({"expression": "trigger.n > 30"}, "no", {"result": False}),
        ({"filter": {"field": "trigger.n", "op": "gt", "value": 3}}, "yes", {"result": True}),
        ({"filter": {"field": "trigger.none", "op": "gt", "value": 3}}, "no", {"result": False}),
        ({"expression": "trigger.n"}, "oops", None),
        ({"expression": "trigger.missing > 3"}, "oops", None),
    ],
)
async def test_a_condition_chooses_its_branch(
    engine: Engine, config: Json, taken: str, output: Json | None
) -> None:
    run = await engine.run(
        graph(
            node("check", "condition", **config),
            *(node(name, "transform", output={"by": name}) for name in ("yes", "no", "oops")),
            edges=[
                ("check", "yes", "true"),
                ("check", "no", "false"),
                ("check", "oops", "failure"),
            ],
        ),
        {"n": 5},
    )
    assert run.status == "succeeded", run.error
    assert run.output == {taken: {"by": taken}}
    rest = dict.fromkeys({"yes", "no", "oops"} - {taken}, "skipped")
    failed = taken == "oops"
    assert states(run) == {"check": "failed" if failed else "succeeded", taken: "succeeded", **rest}
    assert by_node(run)["check"].output == output
    assert await error_codes(engine, run) == ({"check": "binding_error"} if failed else {})


@pytest.mark.long
@pytest.mark.parametrize("text", [DOUBLED, FORMULA], ids=["doubled", "formula"])
async def test_an_endlessly_growing_expression_fails_its_node_alone(
    engine: Engine, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.processes.bounded_processes, "SECONDS", 0.3)
    segment = f"{{{{ {text} }}}}"
    attacks = {
        "made": node("made", "transform", output={"x": binding("expression", text)}),
        "written": node("written", "transform", output={"x": binding("template", segment)}),
        "asked": node("asked", "condition", expression=COMPARED),
        "chosen": node("chosen", "switch", cases=[{"key": "a", "expression": COMPARED}]),
    }
    edges = [(name, "rest", "failure") for name in attacks]
    run = await engine.run(
        graph(*attacks.values(), node("rest", "transform", output={}), edges=edges)
    )
    assert run.status == "succeeded", run.error
    assert await error_codes(engine, run) == dict.fromkeys(attacks, "expression_limit")


@pytest.mark.long
async def test_a_workspace_that_evaluates_too_much_is_kept_waiting_and_loses_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.processes.bounded_processes, "SECONDS", 0.3)
    monkeypatch.setattr(runtime.processes.bounded_processes, "QUEUE_SECONDS", 0.01)
    monkeypatch.setattr(_Limits, "per_key", None)
    refuse_beyond(1)
    nodes = [
        node(f"n{number}", "transform", output={"x": binding("expression", DOUBLED)})
        for number in range(2)
    ]
    runs = await asyncio.gather(*(engine.run(graph(one)) for one in nodes))
    assert [run.status for run in runs] == ["failed", "failed"]
    codes = [await error_codes(engine, run) for run in runs]
    assert codes == [{"n0": "expression_limit"}, {"n1": "expression_limit"}]


@pytest.mark.parametrize(
    ("size", "taken"), [(1, "small"), (50, "large"), (500, "large"), (7, "other")]
)
async def test_switch_takes_the_first_case_that_holds(
    engine: Engine, size: int, taken: str
) -> None:
    cases = [
        {"key": "s", "expression": "trigger.size < 5"},
        {"key": "l", "expression": "trigger.size > 10"},
        {"key": "xl", "expression": "trigger.size > 100"},
    ]
    run = await engine.run(
        graph(
            node("pick", "switch", cases=cases),
            *(
                node(name, "transform", output={})
                for name in ("small", "large", "huge", "other", "oops")
            ),
            edges=[
                ("pick", "small", "case", "s"),
                ("pick", "large", "case", "l"),
                ("pick", "huge", "case", "xl"),
                ("pick", "other", "default"),
                ("pick", "oops", "failure"),
            ],
        ),
        {"size": size},
    )
    assert run.output == {taken: {}}
    assert sorted(states(run).values()) == ["skipped"] * 4 + ["succeeded"] * 2


@pytest.mark.parametrize("expression", ["trigger.nothing.at_all == 1", "trigger.text"])
async def test_a_switch_that_cannot_decide_fails(engine: Engine, expression: str) -> None:
    cases = [{"key": "a", "expression": expression}]
    run = await engine.run(
        graph(
            node("pick", "switch", cases=cases),
            node("oops", "transform", output={}),
            node("other", "transform", output={}),
            edges=[("pick", "oops", "failure"), ("pick", "other", "default")],
        ),
        {"text": "true"},
    )
    assert run.output == {"oops": {}}
    assert await error_codes(engine, run) == {"pick": "binding_error"}


BINDINGS: dict[str, tuple[Any, Any]] = {
    "plain": ([1, {"deep": True}], [1, {"deep": True}]),
    "literal": (
        binding("literal", binding("trigger", "not read")),
        {"type": "trigger", "value": "not read"},
    ),
    "trigger": (binding("trigger", "user.tags[1]"), "b"),
    "whole": (binding("trigger", "user"), {"name": "Ada", "tags": ["a", "b"]}),
    "node": (binding("node", "first.list[1].name"), "two"),
    "run": (binding("run", "source"), "manual"),
    "template": (
        binding("template", "{{ trigger.user.name }} has {{ size(nodes.first.list) }}"),
        "Ada has 2",
    ),
    "expression": (
        [binding("expression", "nodes.first.list.map(e, e.name)")],
        [["one", "two"]],
    ),
    "missing": (binding("trigger", "user.no.such.path"), None),
    "missing_node_path": (binding("node", "first.nope"), None),
    "item": (binding("item", "name"), None),
    "typed": (
        {"type": "literal", "value": 1, "and": "a third key"},
        {"type": "literal", "value": 1, "and": "a third key"},
    ),
}
"""A value of each kind, and what becomes of it."""


async def test_transform_with_every_binding(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("first", "transform", output={"list": [{"name": "one"}, {"name": "two"}]}),
            node(
                "all",
                "transform",
                input={"output": binding("literal", {"overlaid": True})},
                output={"never": "seen"},
            ),
            node("each", "transform", output={name: one for name, (one, _) in BINDINGS.items()}),
            edges=[("first", "all"), ("first", "each")],
        ),
        {"user": {"name": "Ada", "tags": ["a", "b"]}},
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    assert run.output["all"] == {"overlaid": True}
    assert run.output["each"] == {name: result for name, (_, result) in BINDINGS.items()}
    assert by_node(run)["each"].input == {"output": run.output["each"]}


async def test_run_facts_can_be_read(engine: Engine) -> None:
    facts = {name: binding("run", name) for name in ("id", "startedAt", "workspaceId")}
    run = await engine.run(graph(node("facts", "transform", output=facts)))
    assert run.output is not None
    assert run.output["facts"]["id"] == str(run.id)
    assert run.output["facts"]["workspaceId"] == str(engine.actor.workspace_id)
    assert run.started_at is not None
    assert run.output["facts"]["startedAt"][:19] == run.started_at.isoformat()[:19]


async def test_a_binding_that_fails_is_a_binding_error(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node(
                "bad",
                "transform",
                label="Bad one",
                output={"x": binding("expression", "1 / (run.id == '' ? 1 : 0)")},
            ),
            node("after", "transform", output={}),
            edges=[("bad", "after")],
        )
    )
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.startswith("Bad one: ")
    assert await error_codes(engine, run) == {"bad": "binding_error"}
    assert run.output is None


async def test_a_node_after_a_failure_reads_its_reason(engine: Engine) -> None:
    said = {
        "whole": binding("node", "bad"),
        "error": binding("node", "bad.error"),
        "text": binding("template", "It failed: {{ nodes.bad.error }} ({{ nodes.bad.errorCode }})"),
    }
    run = await engine.run(
        graph(
            node(
                "bad",
                "transform",
                output={"x": binding("expression", "1 / (run.id == '' ? 1 : 0)")},
            ),
            node("tell", "transform", output=said),
            edges=[("bad", "tell", "failure")],
        )
    )
    assert (run.status, run.output) == (
        "succeeded",
        {
            "tell": {
                "whole": {"error": "divide by zero", "errorCode": "binding_error"},
                "error": "divide by zero",
                "text": "It failed: divide by zero (binding_error)",
            }
        },
    )


async def test_an_output_that_is_no_object_fails(engine: Engine) -> None:
    run = await engine.run(
        graph(node("bad", "transform", input={"output": binding("expression", "[1, 2]")}))
    )
    assert await error_codes(engine, run) == {"bad": "binding_error"}


@pytest.mark.long
async def test_an_output_beyond_a_mebibyte_fails_the_node(engine: Engine) -> None:
    text = binding("expression", "trigger.text + trigger.text")
    run = await engine.run(
        graph(
            node("grow", "transform", output={"text": text}),
            node("oops", "transform", output={"ok": True}),
            edges=[("grow", "oops", "failure")],
        ),
        {"text": "x" * 600_000},
    )
    assert run.output == {"oops": {"ok": True}}
    assert await error_codes(engine, run) == {"grow": "output_too_large"}
    assert by_node(run)["grow"].error == "The node's output is larger than 1 MiB."


@pytest.mark.parametrize(
    ("config", "left", "right", "runs"),
    [
        ({}, "true", "true", True),
        ({}, "true", "false", True),
        ({}, "false", "false", False),
        ({"mode": "any"}, "false", "true", True),
        ({"mode": "any"}, "false", "false", False),
        ({"mode": "count", "count": 2}, "true", "true", True),
        ({"mode": "count", "count": 2}, "true", "false", False),
    ],
)
async def test_a_join_waits_for_all_or_any(
    engine: Engine, config: Json, left: str, right: str, runs: bool
) -> None:
    run = await engine.run(
        graph(
            node("left", "condition", expression=left),
            node("right", "condition", expression=right),
            node("meet", "join", **config),
            node("end", "transform", output={"met": True}),
            edges=[("left", "meet", "true"), ("right", "meet", "true"), ("meet", "end")],
        )
    )
    assert run.status == "succeeded", run.error
    assert run.output == ({"end": {"met": True}} if runs else {})
    met = "succeeded" if runs else "skipped"
    assert (states(run)["meet"], states(run)["end"]) == (met, met)


@pytest.mark.long
async def test_a_join_of_any_continues_while_others_run(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("slow", "delay", seconds=0.5),
            node("fast", "transform", output={}),
            node("meet", "join", mode="any"),
            node("end", "transform", output={"met": True}),
            edges=[("slow", "meet"), ("fast", "meet"), ("meet", "end")],
        )
    )
    nodes = by_node(run)
    assert run.status == "succeeded", run.error
    assert nodes["end"].completed_at < nodes["slow"].completed_at
    assert [one.node_id for one in run.node_runs].count("end") == 1


@pytest.mark.parametrize(
    ("config", "status", "output", "error"),
    [
        ({}, "succeeded", {"result": "succeeded"}, None),
        (
            {"output": {"n": binding("trigger", "n")}, "message": "Done."},
            "succeeded",
            {"n": 5, "result": "succeeded", "message": "Done."},
            None,
        ),
        (
            {"result": "failed", "message": binding("template", "No {{ trigger.n }}")},
            "failed",
            {"result": "failed", "message": "No 5"},
            "Halt: No 5",
        ),
        (
            {"result": "failed"},
            "failed",
            {"result": "failed"},
            "Halt: The run was stopped as failed.",
        ),
    ],
)
async def test_a_stop_ends_the_run_with_its_result(
    engine: Engine, config: Json, status: str, output: Json, error: str | None
) -> None:
    run = await engine.run(
        graph(
            node("first", "transform", output={}),
            node("halt", "stop", label="Halt", **config),
            node("slow", "delay", seconds=60),
            node("after", "transform", output={}),
            edges=[("first", "halt"), ("slow", "after")],
        ),
        {"n": 5},
    )
    assert (run.status, run.output, run.error) == (status, output, error)
    assert states(run)["halt"] == "succeeded"
    assert states(run).get("slow", "cancelled") == "cancelled"
    assert "after" not in states(run)


async def test_a_node_that_breaks_is_an_internal_error_and_the_run_ends(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("a fault planted here")

    monkeypatch.setitem(logic.COMPUTATIONS, NodeKind.JOIN, broken)
    run = await engine.run(graph(node("broken", "join")))
    assert (run.status, run.error) == (
        "failed",
        "broken: The platform failed to execute this node.",
    )
    assert await error_codes(engine, run) == {"broken": "internal_error"}


async def test_a_database_that_is_too_busy_is_no_fault_of_the_node(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def busy(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 1:
            raise PoolTimeoutError("a fault planted here")
        return logic.join(*given)

    monkeypatch.setitem(logic.COMPUTATIONS, NodeKind.JOIN, busy)
    run = await engine.run(graph(node("meet", "join")))
    assert (run.status, len(calls)) == ("succeeded", 2)


async def test_a_disabled_node_is_passed_through(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("first", "transform", output={"a": 1}),
            node(
                "off",
                "transform",
                output={"x": binding("expression", "1 / (run.id == '' ? 1 : 0)")},
                disabled=True,
            ),
            node(
                "last",
                "transform",
                output={"off": binding("node", "off.x"), "first": binding("node", "first.a")},
            ),
            edges=[("first", "off"), ("off", "last")],
        )
    )
    assert run.output == {"last": {"off": None, "first": 1}}
    assert states(run) == {"first": "succeeded", "off": "skipped", "last": "succeeded"}
    assert by_node(run)["off"].attempt == 0
