"""What a workspace may have open at once, and the refusal of what is over it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import func, select, update

from models.automation.action_runs.tables import action_run
from models.messages.deliveries.commands import delivery
from models.messages.jobs.store import job
from models.sources.data_source_runs.tables import data_source_run
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.items import read
from tests.support.lost_worker import lost_worker
from tests.support.related import make_database
from tests.support.spaces import Space


@pytest.mark.long
async def test_no_more_than_the_bound_is_open_however_many_ask_at_once(
    client: Client, space: Space, foreign: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.core.lifecycle.commands.OPEN", {WorkflowKind.EXPORT: 3})
    export = f"/v1/databases/{await make_database(client, space, 'Mine')}/export"
    answers = await asyncio.gather(*(client.post(export, json={"format": "csv"}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 5
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["Retry-After"] == "10"
    assert refused.json()["_tag"] == "ApiRateLimited"
    assert "3 open executions (export)" in refused.json()["message"]
    async with space.database.reading() as work:
        of_space = select(func.count()).where(job.c.workspace_id == space.id)
        assert await work.scalar(of_space) == 3
    others = client.with_token(foreign.token)
    theirs = f"/v1/databases/{await make_database(others, foreign, 'Theirs')}/export"
    assert (await others.post(theirs, json={"format": "csv"})).status_code == 200


Start = Callable[[], Awaitable[httpx2.Response]]


async def imports(client: Client, space: Space) -> Start:
    body = {"label": "Rows", "kind": "inline", "format": "csv", "text": "title\nOne\n"}
    return lambda: client.post(f"{space.path}/imports", json=body)


async def refreshes(client: Client, space: Space) -> Start:
    """Refreshes of one source after the other: of each, one is open at most."""
    body = {"label": "Rows", "kind": "http_json", "config": {"url": "https://example.test/rows"}}
    path = f"{space.path}/data-sources"
    made = [read(await client.post(path, json=body), 201)["id"] for _ in range(3)]
    return lambda: client.post(f"{path}/{made.pop()}/refresh", json={})


async def action_runs(client: Client, space: Space) -> Start:
    body = {"label": "Act", "kind": "transform", "config": {"output": {}}}
    made = read(await client.post(f"{space.path}/actions", json=body), 201)["id"]
    return lambda: client.post(f"{space.path}/actions/{made}/run", json={"wait": False})


async def exports(client: Client, space: Space) -> Start:
    path = f"/v1/databases/{await make_database(client, space, 'Mine')}/export"
    return lambda: client.post(path, json={"format": "csv"})


async def workspace_exports(client: Client, space: Space) -> Start:
    return lambda: client.post(f"{space.path}/workspace-exports", json={})


async def run_operations(client: Client, space: Space) -> Start:
    body: dict[str, Any] = {"action": "cancel", "filter": {}}
    return lambda: client.post(f"{space.path}/run-operations", json=body)


@pytest.mark.long
@pytest.mark.parametrize(
    ("starting", "place"),
    [
        (imports, "{space}/imports/{id}"),
        (refreshes, "{space}/data-sources/{dataSourceId}/runs/{id}"),
        (exports, "{space}/exports/{id}"),
        (workspace_exports, "{space}/workspace-exports/{id}"),
        (run_operations, "{space}/run-operations/{id}"),
    ],
)
async def test_open_work_says_since_when_it_waits_for_a_lost_worker(
    client: Client, space: Space, starting: Callable[..., Awaitable[Start]], place: str
) -> None:
    made = (await (await starting(client, space))()).json()["data"]
    path = place.format(**{"space": space.path, "id": made.get("importId"), **made})
    assert "waitingForWorkerSince" not in read(await client.get(path))
    async with lost_worker(space) as lost:
        shown = read(await client.get(path))
        assert datetime.fromisoformat(shown["createdAt"]) > lost
        assert shown["waitingForWorkerSince"] == shown["createdAt"]
    assert "waitingForWorkerSince" not in read(await client.get(path))


async def test_a_delivery_that_is_due_says_since_when_it_waits_for_a_lost_worker(
    client: Client, space: Space
) -> None:
    body = {"url": "https://example.test/hook"}
    endpoint = read(await client.post(f"{space.path}/webhook-endpoints", json=body), 201)
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}"
    first, later = [
        read(await client.post(f"{path}/test", json={}))["id"] for _ in ("first", "later")
    ]
    async with space.database.transaction() as work:
        paused = work.now + timedelta(hours=1)
        changed = update(delivery).where(delivery.c.id == UUID(later))
        await work.execute(changed.values(next_attempt_at=paused))

    async def waits() -> Mapping[str, str | None]:
        deliveries = read(await client.get(f"{path}/deliveries"))["deliveries"]
        assert all(one["status"] == "pending" for one in deliveries)
        return {one["id"]: one.get("waitingForWorkerSince") for one in deliveries}

    assert await waits() == {first: None, later: None}
    async with lost_worker(space) as lost:
        waiting = await waits()
        assert datetime.fromisoformat(waiting[first] or "") > lost
        assert waiting[later] is None
    assert await waits() == {first: None, later: None}


KINDS: Mapping[WorkflowKind, tuple[Callable[[Client, Space], Awaitable[Start]], Any]] = {
    WorkflowKind.SPREADSHEET_IMPORT: (imports, data_source_run),
    WorkflowKind.DATA_SOURCE_REFRESH: (refreshes, data_source_run),
    WorkflowKind.ACTION_RUN: (action_runs, action_run),
}


@pytest.mark.parametrize("workflow_kind", KINDS)
async def test_open_work_of_one_workspace_is_refused_to_it_alone(
    client: Client,
    space: Space,
    foreign: Space,
    monkeypatch: pytest.MonkeyPatch,
    workflow_kind: WorkflowKind,
) -> None:
    monkeypatch.setattr("models.core.lifecycle.commands.OPEN", dict.fromkeys(KINDS, 2))
    starting, table = KINDS[workflow_kind]
    start = await starting(client, space)
    answers = [await start() for _ in range(3)]
    assert [answer.is_success for answer in answers] == [True, True, False]
    refused = answers[-1]
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "10")
    assert refused.json()["_tag"] == "ApiRateLimited"
    assert f"2 open executions ({workflow_kind.replace('-', ' ')})" in refused.json()["message"]
    async with space.database.reading() as work:
        accepted = select(func.count()).where(table.c.workspace_id == space.id)
        assert await work.scalar(accepted) == 2
    for another, starts in KINDS.items():
        if another is not workflow_kind:
            assert (await (await starts[0](client, space))()).is_success, (
                "another workflow_kind's bound"
            )
    theirs = await starting(client.with_token(foreign.token), foreign)
    assert (await theirs()).is_success
