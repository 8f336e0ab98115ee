"""Runs that end before they begin keep the node runs that they were answered with.

No worker is there: what is queued stays queued.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from models.automation.automation_runs.execution import abandon
from models.automation.automation_runs.rules import RunStatus
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]

TWO = {
    "nodes": [
        {"id": "one", "kind": "delay", "config": {"seconds": 86_400}},
        {"id": "two", "kind": "delay", "config": {"seconds": 86_400}},
    ],
    "edges": [],
}


Step = Callable[[Client, Json, str], Awaitable[None]]


def _post(suffix: str, body: Json | None = None) -> Step:
    """A call below the path of the automation, or below that of its run."""

    async def post(client: Client, made: Json, run_id: str) -> None:
        read(await client.post(f"{path_of(made)}/{suffix.format(run=run_id)}", json=body or {}))

    return post


async def _cancel_all(client: Client, made: Json, _: str) -> None:
    path = f"/v1/workspaces/{made['workspaceId']}/automation-runs/cancel"
    read(await client.post(path, json={}))


START = _post("run")
PAUSE = _post("pause")
CANCEL = _post("runs/{run}/cancel", {})
CANCEL_SEVERAL = _post("runs/cancel", {"status": "queued"})


@pytest.mark.parametrize(
    ("before", "end", "concurrency"),
    [
        (None, CANCEL, None),
        (None, CANCEL_SEVERAL, None),
        (None, _cancel_all, None),
        (PAUSE, CANCEL, None),
        (PAUSE, CANCEL_SEVERAL, None),
        (START, CANCEL, {"limit": 1}),
        (START, _cancel_all, {"limit": 1}),
        (None, START, {"limit": 1, "policy": "cancel_oldest"}),
        (None, None, None),
        (START, None, {"limit": 1}),
    ],
)
async def test_a_run_that_never_began_keeps_its_node_runs(
    client: Client, space: Space, before: Step | None, end: Step | None, concurrency: Json | None
) -> None:
    """Before its start another step is taken; then it is ended, or times out."""
    trigger = {"kind": "manual", **({"concurrency": concurrency} if concurrency else {})}
    made = await publish(client, space, graph=TWO, triggerConfig=trigger)
    if before is not None:
        await before(client, made, "")
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    path = f"{path_of(made)}/runs/{run['id']}"
    queued = {one["id"]: one["nodeId"] for one in run["nodeRuns"]}
    assert sorted(queued.values()) == ["one", "two"]
    if end is not None:
        await end(client, made, run["id"])
    else:
        async with space.database.transaction() as work:
            assert await abandon(work, UUID(run["id"]), RunStatus.TIMED_OUT, "Too late.")
    ended = read(await client.get(path))
    assert ended["status"] == ("timed_out" if end is None else "cancelled")
    for nodes in (ended["nodeRuns"], read(await client.get(f"{path}/node-runs"))["nodeRuns"]):
        assert {one["id"]: one["nodeId"] for one in nodes} == queued
        assert {one["status"] for one in nodes} == {"cancelled"}
        assert {one["completedAt"] for one in nodes} == {ended["completedAt"]}


async def _one_by_one(client: Client, path: str) -> list[Json]:
    """The node runs of a run, by pages of one."""
    query, nodes = {"limit": "1"}, []
    while True:
        page = read(await client.get(f"{path}/node-runs", params=query))
        nodes += page["nodeRuns"]
        if page["cursor"] is None:
            return nodes
        query["cursor"] = page["cursor"]


async def test_the_list_of_node_runs_pages_through_those_that_never_began(
    client: Client, space: Space
) -> None:
    made = await publish(client, space, graph=TWO)
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    path = f"{path_of(made)}/runs/{run['id']}"
    answered = read(await client.post(f"{path}/cancel"))
    assert [one["status"] for one in answered["nodeRuns"]] == ["cancelled", "cancelled"]
    assert [one["nodeId"] for one in await _one_by_one(client, path)] == ["one", "two"]
    filters = [({"nodeId": "two"}, ["two"]), ({"status": "failed"}, []), ({"scopeKey": "x"}, [])]
    for filtered, names in filters:
        listed = read(await client.get(f"{path}/node-runs", params=filtered))["nodeRuns"]
        assert [one["nodeId"] for one in listed] == names


async def test_a_run_from_a_node_that_never_began_lists_what_it_reuses_first(
    client: Client, space: Space
) -> None:
    edges = [{"from": "one", "to": "two"}]
    made = await publish(client, space, graph={**TWO, "edges": edges})
    run = read(await client.post(f"{path_of(made)}/run-from-node", json={"nodeId": "two"}))
    path = f"{path_of(made)}/runs/{run['id']}"
    read(await client.post(f"{path}/cancel"))
    shown = [(one["nodeId"], one["status"]) for one in await _one_by_one(client, path)]
    assert shown == [("one", "skipped"), ("two", "cancelled")]
