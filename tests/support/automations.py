"""Automations over HTTP, as tests of the API make them."""

from typing import Any

import httpx2
from sqlalchemy import func, select

from models.automation.automation_runs.tables import automation_run
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import item
from models.core.idempotency import idempotency_reply
from runtime.temporal.outbox import outbox
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]

DAY = {"nodes": [{"id": "wait", "kind": "delay", "config": {"seconds": 86_400}}], "edges": []}
"""A graph whose runs do not end while a test looks at them, whether or not a worker is there."""

BROKEN = {
    "nodes": [
        {"id": "a", "kind": "transform", "config": {"output": {}}},
        {"id": "b", "kind": "transform", "config": {}},
    ],
    "edges": [{"from": "a", "to": "nowhere"}],
}
"""A graph that may be saved and not be published."""


def numbered(number: int) -> Json:
    """A small graph that differs from every other number's."""
    output = {"number": number}
    return {"nodes": [{"id": "n", "kind": "transform", "config": {"output": output}}]}


async def create(client: Client, space: Space, **body: Any) -> Json:
    """The detail of a new automation."""
    answer = await client.post(
        f"{space.path}/automations", json={"label": "Test", "graph": DAY, **body}
    )
    return read(answer, 201)


async def publish(client: Client, space: Space, **body: Any) -> Json:
    """The detail of a new automation, published and enabled."""
    made = await create(client, space, enabled=True, **body)
    return read(await client.post(f"{path_of(made)}/publish", json={}))


def path_of(made: Json) -> str:
    """Where an automation's operations are."""
    return f"/v1/workspaces/{made['workspaceId']}/automations/{made['id']}"


def read(answer: httpx2.Response, status: int = 200) -> Any:
    """The data of a success."""
    assert answer.status_code == status, answer.text
    return answer.json()["data"]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and class of a refusal."""
    return answer.status_code, answer.json()["error"]


async def row_counts(space: Space) -> dict[str, int]:
    """The number of rows of the workspace in each table that an automation's operations write."""
    tables = (automation, automation_version, automation_graph, automation_run, item, outbox)
    async with space.database.transaction() as work:
        counts = {
            table.name: await work.scalar(
                select(func.count()).select_from(table).where(table.c.workspace_id == space.id)
            )
            for table in tables
        }
        replies = await work.scalar(select(func.count()).select_from(idempotency_reply))
    return {**counts, "idempotency_reply": replies}
