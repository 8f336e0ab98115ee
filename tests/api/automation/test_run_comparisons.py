"""Two runs side by side over HTTP: what differs, where first, and who may see it."""

from typing import Any, NamedTuple

import pytest

from models.core.access.rules import Role
from tests.support.ageing import make_automation
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.written_runs import insert_run, node

Json = dict[str, Any]
EXECUTED = "models.automation.automation_runs.history"


class TwoRuns(NamedTuple):
    """Ids of a run and its reference, and the comparison of the two."""

    run: str
    reference: str
    shown: Json


def comparison(space: Space, version: Any, run_id: str) -> str:
    return f"{space.path}/automations/{version.automation_id}/runs/{run_id}/comparison"


@pytest.fixture
async def version(space: Space) -> Any:
    return await make_automation(space)


@pytest.fixture
async def two_runs(client: Client, space: Space, version: Any) -> TwoRuns:
    """A failed run beside the last before it that succeeded, among others that do not count."""
    well = [node("read", 0), node("decide", 1, outcome="true"), node("pay", 2)]
    await insert_run(space, version, 0, well, status="succeeded")
    reference = await insert_run(
        space, version, 1, well, status="succeeded", trigger_payload={"order": 1, "vip": True}
    )
    await insert_run(space, version, 2, well, status="failed")
    await insert_run(space, version, 3, well, source="test")
    run = await insert_run(
        space,
        version,
        4,
        [
            node("read", 0),
            node("decide", 2, outcome="false", output={"n": 2, "note": "x" * 1_000}),
            node("refuse", 3, status="failed", outcome="failure", output=None, error="No."),
        ],
        status="failed",
        error="refuse: No.",
        trigger_payload={"order": 2, "vip": True},
    )
    await insert_run(space, version, 5, well, status="succeeded")
    return TwoRuns(run, reference, read(await client.get(comparison(space, version, run))))


async def test_a_failed_run_is_compared_with_the_last_that_succeeded(two_runs: TwoRuns) -> None:
    run, reference = two_runs.shown["run"], two_runs.shown["reference"]
    assert (run["id"], reference["id"]) == (two_runs.run, two_runs.reference)
    assert (run["status"], reference["status"]) == ("failed", "succeeded")
    assert run["version"] == reference["version"] == 1
    assert two_runs.shown["sameVersion"] is True
    assert two_runs.shown["triggerPayload"] == {
        "differs": True,
        "complete": True,
        "differences": [{"path": "order", "change": "changed", "before": "1", "after": "2"}],
    }
    assert two_runs.shown["trimmed"] is False


async def test_each_node_says_how_the_runs_differ_and_one_where_first(two_runs: TwoRuns) -> None:
    assert two_runs.shown["firstDivergence"] == {
        "nodeId": "decide",
        "scopeKey": "",
        "differs": ["branch", "output"],
    }
    nodes = {one["nodeId"]: one for one in two_runs.shown["nodes"]}
    assert list(nodes) == ["read", "decide", "pay", "refuse"]
    assert nodes["read"]["differs"] == []
    assert nodes["read"]["output"] == {"differs": False, "differences": [], "complete": True}
    assert nodes["decide"]["run"] == {
        "status": "succeeded",
        "branch": "false",
        "attempt": 1,
        "startedAfter": 2000.0,
        "duration": 500.0,
        "reused": False,
    }
    assert nodes["decide"]["reference"]["startedAfter"] == 1000.0
    added = nodes["decide"]["output"]["differences"][1]
    assert (added["path"], added["change"], len(added["after"])) == ("note", "added", 201)
    assert (nodes["pay"]["differs"], "run" in nodes["pay"]) == (["presence"], False)
    assert (nodes["refuse"]["differs"], "reference" in nodes["refuse"]) == (["presence"], False)
    assert nodes["refuse"]["run"]["error"] == "No."


async def test_another_run_is_named(client: Client, space: Space, version: Any) -> None:
    later = await insert_run(space, version, 2, [node("a", 0)], status="failed")
    run = await insert_run(space, version, 1, [node("a", 0)], status="cancelled")
    answer = await client.get(comparison(space, version, run))
    assert refusal(answer) == (400, "validation_error")
    assert "Choose a run" in answer.text
    found = read(await client.get(comparison(space, version, run), params={"with": later}))
    assert found["reference"]["id"] == later
    assert "firstDivergence" not in found
    assert [one["differs"] for one in found["nodes"]] == [[]]


async def test_a_reference_is_searched_among_a_bounded_number_of_runs(
    client: Client, space: Space, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = await insert_run(space, version, 0)
    for number in range(1, 4):
        run = await insert_run(space, version, number, status="failed")
    path = comparison(space, version, run)
    for most, status in ((2, 400), (3, 200)):
        monkeypatch.setattr(f"{EXECUTED}.LOOKED_THROUGH", most)
        assert (await client.get(path)).status_code == status
    assert read(await client.get(path))["reference"]["id"] == reference


async def test_iterations_are_aligned_by_their_scope(
    client: Client, space: Space, version: Any
) -> None:
    def turn(number: int, output: Json) -> Json:
        return node("charge", number, scope_key=f"each:{number}", output=output)

    reference = await insert_run(space, version, 0, [turn(n, {"n": n}) for n in range(4)])
    run = await insert_run(
        space, version, 1, [turn(n, {"n": 9 if n == 2 else n}) for n in (1, 0, 2)]
    )
    found = read(await client.get(comparison(space, version, run), params={"with": reference}))
    scopes = {one["scopeKey"]: one["differs"] for one in found["nodes"]}
    assert scopes == {"each:0": [], "each:1": [], "each:2": ["output"], "each:3": ["presence"]}
    assert found["firstDivergence"]["scopeKey"] == "each:2"


async def test_an_open_run_may_still_come_to_a_node(
    client: Client, space: Space, version: Any
) -> None:
    await insert_run(space, version, 0, [node("a", 0), node("b", 1)])
    waits = node("b", 1, status="waiting", outcome=None, output=None)
    run = await insert_run(space, version, 1, [node("a", 0), waits], status="waiting")
    found = read(await client.get(comparison(space, version, run)))
    assert "firstDivergence" not in found
    run = await insert_run(space, version, 2, [node("a", 0)], status="running")
    found = read(await client.get(comparison(space, version, run)))
    assert "firstDivergence" not in found


async def test_large_runs_and_values_are_bounded(
    client: Client, space: Space, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.automation.run_comparisons.SHOWN", 3)
    monkeypatch.setattr("models.automation.run_comparisons.EXPLAINED", 1)
    large = {"text": "x" * 70_000}
    same = [node(f"n{n}", n) for n in range(6)]
    reference = await insert_run(space, version, 0, same)
    changed = [{**one} for one in same]
    changed[2]["output"], changed[4]["output"], changed[5]["output"] = {"n": 2}, {"n": 3}, large
    run = await insert_run(space, version, 1, changed)
    path = comparison(space, version, run)
    found = read(await client.get(path, params={"with": reference}))
    assert [one["nodeId"] for one in found["nodes"]] == ["n2", "n4", "n5"], "what differs, first"
    assert found["trimmed"] is True
    outputs = [one["output"] for one in found["nodes"]]
    assert outputs[0]["differences"][0]["after"] == "2"
    assert outputs[1] == outputs[2] == {"differs": True, "differences": [], "complete": False}
    monkeypatch.setattr("models.automation.run_comparisons.EXPLAINED", 9)
    found = read(await client.get(path, params={"with": reference}))
    outputs = [one["output"] for one in found["nodes"]]
    assert outputs[1]["differences"][0]["after"] == "3"
    assert outputs[2] == {"differs": True, "differences": [], "complete": False}, "too large"


async def test_runs_elsewhere_are_not_there(
    client: Client, space: Space, foreign: Space, version: Any
) -> None:
    run = await insert_run(space, version, 0)
    other = await make_automation(space)
    there = await make_automation(foreign)
    for wrong in (
        await insert_run(space, other, 0),
        await insert_run(foreign, there, 0),
        str(space.id),
    ):
        answer = await client.get(comparison(space, version, run), params={"with": wrong})
        assert refusal(answer) == (404, "not_found")
    _, token = await space.member(Role.GUEST)
    headers = {"Authorization": f"Bearer {token}"}
    answer = await client.get(comparison(space, version, run), headers=headers)
    assert refusal(answer) == (404, "not_found")
