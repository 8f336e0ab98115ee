"""Lists of runs over HTTP: filters, pages, cursors; and runs that have ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from models.automation.automation_runs.rules import NodeStatus, RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from runtime.ids import new_id
from tests.support.automations import numbered, path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def rows_of_runs(space: Space, made: Json, *pairs: tuple[RunStatus, RunSource]) -> list[str]:
    """Runs as history would leave them, oldest first."""
    ids = []
    async with space.database.transaction() as work:
        version = await work.first(
            select(automation_run.c.graph_checksum).where(
                automation_run.c.automation_id == made["id"]
            )
        )
        assert version is not None
        for status, source in pairs:
            ids.append(new_id())
            await work.execute(
                insert(automation_run).values(
                    id=ids[-1],
                    workspace_id=space.id,
                    automation_id=made["id"],
                    automation_version_id=made["versionId"],
                    graph_checksum=version.graph_checksum,
                    status=status,
                    source=source,
                    trigger_payload={},
                    options={},
                    created_at=work.now,
                )
            )
    return [str(id_) for id_ in ids]


async def test_runs_are_listed_by_status_and_source(client: Client, space: Space) -> None:
    made = await publish(client, space)
    first = read(await client.post(f"{path_of(made)}/run", json={}))
    await client.post(f"{path_of(made)}/runs/{first['id']}/cancel")
    succeeded = (RunStatus.SUCCEEDED, RunSource.TEST)
    failed = (RunStatus.FAILED, RunSource.MANUAL)
    ids = [first["id"], *await rows_of_runs(space, made, succeeded, failed, succeeded, failed)]

    async def listed(**query: str) -> list[str]:
        found: list[str] = []
        while True:
            page = read(await client.get(f"{path_of(made)}/runs", params={"limit": "2", **query}))
            assert all("nodeRuns" not in run for run in page["runs"])
            found += [run["id"] for run in page["runs"]]
            if page["cursor"] is None:
                return found
            query["cursor"] = page["cursor"]

    assert await listed() == ids[::-1]
    assert await listed(status="failed") == [ids[4], ids[2]]
    assert await listed(source="test") == [ids[3], ids[1]]
    assert await listed(source="manual", status="cancelled") == [ids[0]]
    assert await listed(source="test", status="failed") == []


async def test_a_list_says_what_its_runs_wait_for(client: Client, space: Space) -> None:
    made = await publish(client, space)
    read(await client.post(f"{path_of(made)}/run", json={}))
    statuses = [RunStatus.WAITING, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.SUCCEEDED]
    ids = await rows_of_runs(space, made, *((status, RunSource.TEST) for status in statuses))
    places = [("wait", f"loop:{index}") for index in range(120)]
    async with space.database.transaction() as work:
        for number, id_ in enumerate(ids[:3]):
            rows = [
                {
                    "run_id": id_,
                    "node_id": node_id,
                    "scope_key": scope_key,
                    "workspace_id": space.id,
                    "node_kind": "delay",
                    "status": NodeStatus.WAITING if number == 2 or index == 7 else "succeeded",
                    "attempt": 1,
                    "due_at": datetime(2030, 1, 2, tzinfo=UTC),
                    "started_at": work.now + timedelta(seconds=index),
                }
                for index, (node_id, scope_key) in enumerate(places)
            ]
            await work.execute(insert(node_run), rows)
    wait = {"nodeId": "wait", "reason": "delay", "until": "2030-01-02T00:00:00.000Z"}
    expected: list[list[Json]] = [
        [],
        [{**wait, "scopeKey": f"loop:{index}"} for index in range(100)],
        [{**wait, "scopeKey": "loop:7"}],
        [{**wait, "scopeKey": "loop:7"}],
        [],
    ]
    for path in (f"{path_of(made)}/runs", f"{space.path}/automation-runs"):
        listed = read(await client.get(path))["runs"]
        assert [run["metadata"]["waiting"] for run in listed] == expected
    for id_, waiting in zip(reversed(ids), expected, strict=False):
        one = read(await client.get(f"{path_of(made)}/runs/{id_}"))
        shown = read(await client.get(f"/v1/runs/{id_}"))["run"]
        assert one["metadata"]["waiting"] == shown["metadata"]["waiting"] == waiting


async def test_a_cursor_belongs_to_its_list(client: Client, space: Space) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    for automation in (made, other):
        for _ in range(2):
            await client.post(f"{path_of(automation)}/run", json={})
    page = read(await client.get(f"{path_of(made)}/runs", params={"limit": "1"}))
    bound = {"limit": "1", "cursor": page["cursor"]}
    assert len(read(await client.get(f"{path_of(made)}/runs", params=bound))["runs"]) == 1
    for path, query in (
        (f"{path_of(other)}/runs", bound),
        (f"{path_of(made)}/runs", {**bound, "status": "queued"}),
        (f"{path_of(made)}/runs", {**bound, "source": "manual"}),
        (f"{path_of(made)}/versions", bound),
        (f"{space.path}/automations", bound),
        (f"{path_of(made)}/runs", {"cursor": page["cursor"].swapcase()}),
    ):
        refused = await client.get(path, params=query)
        assert refusal(refused) == (400, "validation_error"), (path, query)
        assert refused.json()["details"][0]["path"] == "cursor"


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"status": "done"}, "status"),
        ({"source": "robot"}, "source"),
        ({"limit": "many"}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "x"}, "cursor"),
    ],
)
async def test_invalid_filters_of_a_run_list_are_refused(
    client: Client, space: Space, query: dict[str, str], path: str
) -> None:
    made = await publish(client, space)
    refused = await client.get(f"{path_of(made)}/runs", params=query)
    assert refusal(refused) == (400, "validation_error")
    assert refused.json()["details"][0]["path"] == path


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled", "timed_out"])
async def test_a_closed_run_stays_closed_in_the_database_too(
    client: Client, space: Space, status: str
) -> None:
    made = await publish(client, space, graph=numbered(1))
    run = read(await client.post(f"{path_of(made)}/test-run", json={}))
    await client.post(f"{path_of(made)}/runs/{run['id']}/cancel")
    (id_,) = await rows_of_runs(space, made, (RunStatus(status), RunSource.TEST))
    with pytest.raises(Exception, match="cannot change"):
        async with space.database.transaction() as work:
            await work.execute(
                update(automation_run)
                .where(automation_run.c.id == id_)
                .values(status=RunStatus.RUNNING)
            )
    before = await client.get(f"{path_of(made)}/runs/{id_}")
    after = await client.post(f"{path_of(made)}/runs/{id_}/cancel")
    assert after.content == before.content
