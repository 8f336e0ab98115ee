"""How runs end: failures and the edges that take them, siblings, and nodes that never ran."""

import itertools
from typing import Any

import pytest

from tests.support.endpoint import Serve, never, once, reply
from tests.support.engine import Engine, by_node, graph, node
from tests.support.run_rows import states

Json = dict[str, Any]
DIVISION = {"type": "expression", "value": "1 / (run.id == '' ? 1 : 0)"}


def bad(id_: str, **fields: Any) -> Json:
    return node(id_, "transform", output={"x": DIVISION}, **fields)


def good(id_: str) -> Json:
    return node(id_, "transform", output={"by": id_})


async def test_the_output_is_that_of_the_leaves(engine: Engine) -> None:
    run = await engine.run(
        graph(
            good("a"), good("b"), good("c"), good("d"), edges=[("a", "b"), ("a", "c"), ("c", "d")]
        )
    )
    assert (run.status, run.error) == ("succeeded", None)
    assert run.output == {"b": {"by": "b"}, "d": {"by": "d"}}
    assert run.metadata["progress"] == {"done": 4, "total": 4}
    assert run.started_at <= run.completed_at
    assert run.node_runs[0].node_id == "a"


async def test_the_error_names_the_node_by_its_label(engine: Engine) -> None:
    run = await engine.run(graph(bad("b", label="Bill the client")))
    assert (run.status, run.output) == ("failed", None)
    assert run.error is not None
    assert run.error.startswith("Bill the client: ")
    assert by_node(run)["b"].error in run.error


async def test_a_failure_skips_what_only_success_reaches(engine: Engine) -> None:
    run = await engine.run(
        graph(
            bad("b"),
            good("always"),
            good("success"),
            good("failure"),
            good("later"),
            edges=[
                ("b", "always"),
                ("b", "success", "success"),
                ("b", "failure", "failure"),
                ("always", "later"),
            ],
        )
    )
    assert (run.status, run.output) == ("succeeded", {"failure": {"by": "failure"}})
    assert states(run) == {
        "b": "failed",
        "always": "skipped",
        "success": "skipped",
        "later": "skipped",
        "failure": "succeeded",
    }


@pytest.mark.parametrize("status", [200, 500])
async def test_finally_is_taken_either_way(engine: Engine, serve: Serve, status: int) -> None:
    endpoint = await serve(reply(status))
    run = await engine.run(
        graph(
            node("call", "http_request", url=endpoint.url),
            good("cleanup"),
            good("handler"),
            edges=[("call", "cleanup", "finally"), ("call", "handler", "failure")],
        )
    )
    assert run.status == "succeeded", run.error
    assert states(run)["cleanup"] == "succeeded"
    assert states(run)["handler"] == ("succeeded" if status == 500 else "skipped")


async def test_an_unhandled_failure_stops_the_branches_beside_it(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(never)
    once_called = await serve(once(endpoint.reached, reply()))
    run = await engine.run(
        graph(
            node("call", "http_request", url=endpoint.url),
            node("wait", "http_request", url=once_called.url),
            node("long", "delay", seconds=600),
            bad("b"),
            good("never"),
            edges=[("wait", "b"), ("call", "never")],
        )
    )
    assert run.status == "failed"
    assert states(run) == {
        "call": "cancelled",
        "wait": "succeeded",
        "long": "cancelled",
        "b": "failed",
    }
    assert by_node(run)["long"].completed_at is not None


@pytest.mark.long
async def test_on_error_continue_lets_the_other_branches_finish(engine: Engine) -> None:
    shape = graph(
        bad("b", label="Bad"),
        good("after_b"),
        node("wait", "delay", seconds=0.3),
        good("after_wait"),
        edges=[("b", "after_b"), ("wait", "after_wait")],
    )
    run = await engine.run({**shape, "onError": "continue"})
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.startswith("Bad: ")
    assert states(run) == {
        "b": "failed",
        "after_b": "skipped",
        "wait": "succeeded",
        "after_wait": "succeeded",
    }


async def test_failures_in_a_row_are_notified_by_the_first(engine: Engine) -> None:
    shape = graph(bad("one", label="One"), bad("two", label="Two"))
    run = await engine.run({**shape, "onError": "continue"})
    assert run.error is not None
    assert run.error.startswith("One: ")
    assert states(run) == {"one": "failed", "two": "failed"}


async def test_a_chain_longer_than_one_batch(engine: Engine) -> None:
    names = [f"n{number:03}" for number in range(200)]
    run = await engine.run(
        graph(
            *(
                node(name, "transform", output={"n": {"type": "expression", "value": text}})
                for name, text in zip(
                    names, ["0", *(f"nodes.{name}.n + 1" for name in names)], strict=False
                )
            ),
            edges=list(itertools.pairwise(names)),
        )
    )
    assert run.status == "succeeded", run.error
    assert run.output == {"n199": {"n": 199}}
    assert {one.attempt for one in run.node_runs} == {1}


@pytest.mark.long
async def test_labels_at_their_longest_do_not_stop_a_run(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply())
    label = "🦄" * 200
    run = await engine.run(
        graph(
            node("call", "http_request", label=label, url=endpoint.url),
            node("wait", "delay", label=label, seconds=0),
            edges=[("call", "wait")],
        ),
        label="🦄" * 200,
    )
    assert run.status == "succeeded", run.error
