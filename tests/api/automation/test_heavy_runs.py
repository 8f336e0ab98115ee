"""Runs whose payloads and outputs are as large as they may be, read a few megabytes at a time."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert, update

from models.automation.automation_runs.tables import automation_run, node_run
from models.core.pagination import ANSWER_BUDGET
from runtime.clock import utc_now
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=12)

MEBIBYTE = 1024 * 1024
HEAVY = {"text": "x" * (MEBIBYTE - 20)}
MANY = 20
"""Twice and a half what one answer carries."""

Json = dict[str, Any]


async def run(client: Client, made: Json) -> Json:
    answer: Json = read(await client.post(f"{path_of(made)}/run", json={}))
    return answer


async def with_heavy_nodes(
    space: Space, run_id: str, *, last: Json | None = None, **values: Any
) -> None:
    now = utc_now()
    rows: list[Json] = [
        {
            "run_id": UUID(run_id),
            "node_id": f"n{number:02}",
            "scope_key": "",
            "workspace_id": space.id,
            "node_kind": "transform",
            "status": "succeeded",
            "attempt": 1,
            "output": HEAVY,
            "started_at": now + timedelta(milliseconds=number),
            "completed_at": now + timedelta(milliseconds=number),
            "error": None,
            "error_code": None,
            **values,
        }
        for number in range(MANY)
    ]
    rows[-1] |= last or {}
    begun = {"status": "running", "started_at": rows[0]["started_at"]}
    async with space.database.transaction() as work:
        await work.execute(insert(node_run), rows)
        await work.execute(
            update(automation_run).where(automation_run.c.id == run_id).values(begun)
        )


async def test_a_run_with_heavy_outputs_is_answered_in_part(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run_id = (await run(client, made))["id"]
    await with_heavy_nodes(space, run_id)
    answer = await client.get(f"{path_of(made)}/runs/{run_id}")
    shown = read(answer)
    assert len(answer.content) < ANSWER_BUDGET + 2 * MEBIBYTE
    assert [one["nodeId"] for one in shown["nodeRuns"]] == [f"n{number:02}" for number in range(9)]
    assert all(one["output"] == HEAVY for one in shown["nodeRuns"])
    assert shown["metadata"]["trimmed"] is True


async def test_failed_node_runs_are_shown_before_others(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run_id = (await run(client, made))["id"]
    broke = {"status": "failed", "error": "It broke.", "error_code": "timeout"}
    await with_heavy_nodes(space, run_id, last=broke)
    shown = read(await client.get(f"{path_of(made)}/runs/{run_id}"))
    assert shown["nodeRuns"][-1]["nodeId"] == "n19"


@pytest.mark.long
async def test_pages_of_heavy_node_runs_end_early_and_lose_none(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    run_id = (await run(client, made))["id"]
    await with_heavy_nodes(space, run_id, input={"text": "y" * MEBIBYTE})
    path = f"{path_of(made)}/runs/{run_id}/node-runs"
    pages = await every_page(client, path, "nodeRuns")
    assert [[one["nodeId"] for one in page] for page in pages] == [
        [f"n{number:02}" for number in range(first, first + 4)] for first in range(0, MANY, 4)
    ]


async def test_pages_of_heavy_runs_end_early_and_lose_none(client: Client, space: Space) -> None:
    made = await publish(client, space)
    ids = [(await run(client, made))["id"] for _ in range(MANY)]
    async with space.database.transaction() as work:
        own = automation_run.c.automation_id == UUID(made["id"])
        await work.execute(update(automation_run).where(own).values(trigger_payload=HEAVY))
    for path in (f"{path_of(made)}/runs", f"{space.path}/automation-runs"):
        pages = await every_page(client, path, "runs")
        assert [len(page) for page in pages] == [9, 9, 2]
        assert sorted(one["id"] for page in pages for one in page) == sorted(ids)
        assert all(one["triggerPayload"] == HEAVY for page in pages for one in page)


@pytest.mark.long
async def test_one_row_beyond_the_budget_is_answered(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run_id = (await run(client, made))["id"]
    huge = {"text": "x" * (ANSWER_BUDGET + 1)}
    await with_heavy_nodes(space, run_id, output=huge)
    pages = await every_page(client, f"{path_of(made)}/runs/{run_id}/node-runs", "nodeRuns")
    assert [len(page) for page in pages] == [1] * MANY


async def every_page(client: Client, path: str, resource: str) -> list[list[Json]]:
    """The pages of a list to its end; each but the first follows a cursor."""
    query = {"limit": "100"}
    pages: list[list[Json]] = []
    while True:
        answer = await client.get(path, params=query)
        assert len(answer.content) < 2 * ANSWER_BUDGET
        shown = read(answer)
        pages.append(shown[resource])
        if shown["cursor"] is None:
            return pages
        query["cursor"] = shown["cursor"]
