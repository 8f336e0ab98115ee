"""Outputs that are too large fail their node and nothing else (interface.md#limits)."""

from typing import Any

import pytest

from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine, graph, node
from tests.support.run_rows import error_codes, states

MEBIBYTE = 1024 * 1024
COPY: Any = {"type": "trigger", "value": "text"}


@pytest.mark.parametrize("copies", [2, 6, 10], ids=["1 MB", "3 MB", "5 MB"])
async def test_a_quick_node_fails_and_the_run_continues(engine: Engine, copies: int) -> None:
    run = await engine.run(
        graph(
            node("grow", "transform", output={"copies": [COPY] * copies}),
            node("then", "transform", output={}),
            node("otherwise", "transform", output={"ok": True}),
            edges=[("grow", "then"), ("grow", "otherwise", "failure")],
        ),
        {"text": "x" * (MEBIBYTE // 2)},
    )
    assert (run.status, run.output) == ("succeeded", {"otherwise": {"ok": True}}), run.error
    assert await error_codes(engine, run) == {"grow": "output_too_large"}
    assert states(run)["then"] == "skipped"


@pytest.mark.parametrize("megabytes", [1, 3, 5])
async def test_an_outside_node_fails_and_the_run_ends(
    engine: Engine, serve: Serve, megabytes: int
) -> None:
    endpoint = await serve(reply(200, {"text": "x" * (megabytes * MEBIBYTE)}))
    run = await engine.run(
        graph(
            node("call", "http_request", url=endpoint.url),
            node("then", "transform", output={}),
            edges=[("call", "then")],
        )
    )
    assert run.status == "failed"
    assert await error_codes(engine, run) == {"call": "too_large"}
    assert len(endpoint.requests) == 1


@pytest.mark.long
async def test_the_output_of_a_run_holds_what_it_has_room_for(engine: Engine) -> None:
    """More leaves than fit, all alike: whichever ends first is among those that do."""
    leaves = [f"n{number}" for number in range(12)]
    shape = graph(*(node(leaf, "transform", output={"copy": COPY}) for leaf in leaves))
    text = "x" * (MEBIBYTE - 100)
    run = await engine.run(shape, {"text": text})
    assert (run.status, set(run.output or {})) == ("succeeded", set(leaves))
    kept = [output for output in (run.output or {}).values() if output is not None]
    assert kept == [{"copy": text}] * 8
    assert run.metadata["trimmed"] is True


async def test_an_output_that_is_null_by_itself_is_not_trimmed(engine: Engine) -> None:
    answer = node("body", "transform", output={"ok": True})
    run = await engine.run(
        graph(answer, node("say", "respond", status=204), edges=[("body", "say")])
    )
    assert (run.output or {}).get("body", "absent") is None
    assert run.metadata["trimmed"] is False


@pytest.mark.long
async def test_an_output_that_lacks_a_leaf_says_so_when_no_node_is_left_out(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(200, {"text": "x" * (MEBIBYTE * 19 // 20)}))
    leaves = [f"n{number}" for number in range(9)]
    run = await engine.run(
        graph(*(node(leaf, "http_request", url=endpoint.url) for leaf in leaves))
    )
    assert (run.status, set(run.output or {})) == ("succeeded", set(leaves))
    assert sum(output is None for output in (run.output or {}).values()) == 1
    assert {one.node_id for one in run.node_runs} == set(leaves)
    assert run.metadata["trimmed"] is True
