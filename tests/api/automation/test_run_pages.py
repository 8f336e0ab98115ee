"""The page of a run: its public part, the part that a caller may see, and the stream of changes."""

import asyncio
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import anyio
import httpx2
import pytest
from fastapi import FastAPI
from fastapi.sse import format_sse_event
from sqlalchemy import func, select, update

from api import run_events
from api.realtime import feeds
from api.realtime.feeds import Streams
from models.automation import run_overviews
from models.automation.automation_runs import execution
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.waits.store import run_wait
from models.core.access.rules import Role, Scope
from models.workspace.system import beat, leave, worker_process
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import Queue
from tests.support.automations import DAY, publish, read, refusal
from tests.support.client import Client
from tests.support.lost_worker import lost_worker
from tests.support.parked import approval, run_of
from tests.support.patience import ENOUGH, eventually
from tests.support.spaces import Space

Json = dict[str, Any]

SECRET = "only the node itself is told"  # what a graph may hold, and the page not

GRAPH = {
    "nodes": [
        {
            "id": "first",
            "kind": "transform",
            "label": "First of all",
            "config": {"output": {"told": SECRET}},
            "position": {"x": 10, "y": -5.5},
        },
        {"id": "wait", "kind": "delay", "config": {"seconds": 86_400}, "disabled": True},
    ],
    "edges": [{"from": "first", "to": "wait", "outcome": "success"}],
}


@pytest.fixture
def streams(app: FastAPI) -> Iterator[Streams]:
    """The streams of the process, as new."""
    streams = app.state.services.streams = Streams()
    yield streams
    app.state.services.streams = Streams()


async def started(client: Client, space: Space, graph: Json = DAY) -> Json:
    """A run without a worker."""
    made = await publish(client, space, graph=graph)
    path = f"{space.path}/automations/{made['id']}"
    return dict(read(await client.post(f"{path}/run", json={"triggerPayload": {"n": 1}})))


async def close(space: Space, run: Json, status: RunStatus = RunStatus.CANCELLED) -> None:
    """The end of a run."""
    async with space.database.transaction() as work:
        assert await execution.abandon(work, run["id"], status, "It is over.")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the events of all streams so far."""
    names: list[str] = []

    def noted(*, event: str, data_str: str) -> bytes:
        names.append(event)
        return format_sse_event(event=event, data_str=data_str)

    monkeypatch.setattr(run_events, "format_sse_event", noted)
    return names


async def until_each_knows(told: list[str], streams: int = 1) -> None:
    """Return once this number of streams have sent the state of their run."""

    async def each_knows() -> bool:
        return told == ["state"] * streams

    await eventually(each_knows, what="the first event of each stream")


def events(answer: httpx2.Response) -> list[tuple[str, Json]]:
    """The events of a stream; comments are none."""
    found = []
    for part in answer.text.split("\n\n"):
        if part.startswith("event: "):
            name, data = part.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


# ---- public


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("run.js", "text/javascript; charset=utf-8"),
        ("layout.js", "text/javascript; charset=utf-8"),
        ("graph.css", "text/css; charset=utf-8"),
    ],
)
async def test_the_assets_of_a_run_page_come_from_the_api(
    client: Client, name: str, media_type: str
) -> None:
    answer = await client.with_token(None).get(f"/pages/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.headers["x-content-type-options"] == "nosniff"
    elsewhere = re.findall(r"https?://[\w./]+", answer.text)
    # A namespace is a name, not an address.
    assert set(elsewhere) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", ["assets.py", "run.html", "nothing.js", "..%2fassets.py"])
async def test_only_the_files_of_the_page_are_handed_out(client: Client, name: str) -> None:
    assert refusal(await client.get(f"/pages/{name}")) == (404, "not_found")


# ---- what a caller sees


async def test_a_run_is_found_by_its_id_alone(client: Client, space: Space) -> None:
    run = await started(client, space, GRAPH)
    seen = read(await client.get(f"/v1/runs/{run['id']}"))
    assert seen["run"]["id"] == run["id"]
    assert seen["run"]["triggerPayload"] == {"n": 1}
    assert seen["automation"] == {"id": run["automationId"], "label": "Test"}
    assert seen["version"] == 1
    assert seen["nodes"] == []
    assert seen["links"] == []
    assert seen["graph"]["nodes"] == [
        {
            "id": "first",
            "kind": "transform",
            "label": "First of all",
            "disabled": False,
            "position": {"x": 10, "y": -5.5},
        },
        {"id": "wait", "kind": "delay", "disabled": True},
    ]
    assert seen["graph"]["edges"][0] | {"id": ""} == {
        "id": "", "from": "first", "to": "wait", "outcome": "success",
    }  # fmt: skip
    assert SECRET not in json.dumps(seen)


async def test_the_graph_is_that_of_the_version_that_runs(client: Client, space: Space) -> None:
    run = await started(client, space, GRAPH)
    path = f"{space.path}/automations/{run['automationId']}"
    await client.patch(path, json={"graph": DAY})
    read(await client.post(f"{path}/publish", json={}))
    seen = read(await client.get(f"/v1/runs/{run['id']}"))
    assert [node["id"] for node in seen["graph"]["nodes"]] == ["first", "wait"]


async def test_every_answer_about_a_run_leads_to_its_page(client: Client, space: Space) -> None:
    run = await started(client, space)
    path = f"{space.path}/automations/{run['automationId']}/runs"
    listed = read(await client.get(path))["runs"]
    by_id = read(await client.get(f"/v1/runs/{run['id']}"))["run"]
    for one in (run, *listed, read(await client.get(f"{path}/{run['id']}")), by_id):
        assert one["metadata"]["pageUrl"] == f"/runs/{run['id']}"
        assert one["metadata"]["temporal"]["workflowId"] == f"automation-run/{run['id']}"


async def test_a_run_says_of_itself_what_its_automation_says(client: Client, space: Space) -> None:
    run = await started(client, space, GRAPH)
    path = f"{space.path}/automations/{run['automationId']}/runs/{run['id']}"
    for status in (None, RunStatus.FAILED):
        if status is not None:
            await close(space, run, status)
        told = read(await client.get(path))["metadata"]
        assert told.pop("trimmed") is False
        seen = read(await client.get(f"/v1/runs/{run['id']}"))["run"]
        assert seen["metadata"] == told
        assert told["progress"] == {"done": 0, "total": 2}


@pytest.mark.parametrize("suffix", ["", "/events"])
async def test_a_run_of_others_is_not_there(
    client: Client, space: Space, foreign: Space, suffix: str
) -> None:
    run = await started(client, space)
    path = f"/v1/runs/{run['id']}{suffix}"
    _, guest = await space.member(Role.GUEST)
    reader = await space.key([one for one in Scope if one is not Scope.AUTOMATIONS_READ])
    assert refusal(await client.with_token(foreign.token).get(path)) == (404, "not_found")
    assert refusal(await client.with_token(guest).get(path)) == (404, "not_found")
    assert refusal(await client.with_token(reader).get(path)) == (403, "denied")
    assert refusal(await client.with_token(None).get(path)) == (401, "unauthorized")


# ---- the stream of changes


@pytest.mark.usefixtures("streams")
async def test_a_stream_tells_what_is_then_what_changes_then_the_end(
    client: Client, space: Space, told: list[str]
) -> None:
    run = await started(client, space)
    watching = asyncio.create_task(client.get(f"/v1/runs/{run['id']}/events"))
    await until_each_knows(told)
    await close(space, run)
    answer = await watching
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    (_, before), (_, after), _ = heard = events(answer)
    assert [name for name, _ in heard] == told == ["state", "state", "end"]
    assert before["run"]["status"] == "queued"
    assert after["run"]["status"] == "cancelled"
    assert after["run"]["error"] == "It is over."


@pytest.mark.usefixtures("streams")
async def test_a_stream_of_an_ended_run_ends_at_once(client: Client, space: Space) -> None:
    run = await started(client, space)
    await close(space, run, RunStatus.FAILED)
    answer = await client.get(f"/v1/runs/{run['id']}/events")
    assert [name for name, _ in events(answer)] == ["state", "end"]


@pytest.mark.long
async def test_a_silent_stream_shows_that_it_is_alive_and_does_not_last_for_ever(
    client: Client, space: Space, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_events.LIFETIME_SECONDS <= 60, "so long may a revoked key still hear"
    # Long enough for heartbeats on a machine that stands still for a while or answers slowly.
    monkeypatch.setattr(run_events, "LIFETIME_SECONDS", 5.0)
    monkeypatch.setattr(run_events, "PAUSE_PER_READ", 0)
    monkeypatch.setattr(feeds, "KEEPALIVE_SECONDS", 0.2)
    run = await started(client, space)
    answer = await client.get(f"/v1/runs/{run['id']}/events")
    assert [name for name, _ in events(answer)] == ["state"]
    assert answer.text.count(": ping\n\n") >= 2
    assert not streams.open


@pytest.mark.usefixtures("streams")
async def test_one_slow_answer_does_not_silence_a_stream(
    client: Client, space: Space, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_events.LONGEST_PAUSE_SECONDS <= 5
    monkeypatch.setattr(run_events, "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(run_events, "PAUSE_PER_READ", 1_000_000)
    run = await started(client, space)
    watching = asyncio.create_task(client.get(f"/v1/runs/{run['id']}/events"))
    await until_each_knows(told)
    await close(space, run)
    answer = await asyncio.wait_for(watching, ENOUGH)
    assert [name for name, _ in events(answer)] == ["state", "state", "end"]


async def test_streams_hold_no_connection_and_are_counted(
    client: Client,
    space: Space,
    foreign: Space,
    streams: Streams,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = await started(client, space)
    path = f"/v1/runs/{run['id']}/events"
    watching = [asyncio.create_task(client.get(path)) for _ in range(5)]
    await until_each_knows(told, 5)
    assert streams.open.total() == 5
    pool: Any = space.database.engine.pool

    async def nobody_holds_one() -> bool:
        return bool(pool.checkedout() == 0)

    # Again and again: once might be before a stream takes the one it keeps.
    for _ in range(20):
        await eventually(nobody_holds_one, what="a moment without a connection")
        await asyncio.sleep(0.01)
    assert streams.open.total() == 5
    monkeypatch.setattr(feeds, "MOST_OF_ONE_CALLER", 5)
    crowded = await client.get(path)
    assert (crowded.status_code, crowded.headers["Retry-After"]) == (429, "1")
    other = client.with_token(foreign.token)
    theirs = await started(other, foreign)
    watching.append(asyncio.create_task(other.get(f"/v1/runs/{theirs['id']}/events")))
    await until_each_knows(told, 6)
    monkeypatch.setattr(feeds, "MOST_STREAMS", 6)
    refused = await client.get(path)
    assert refusal(refused) == (503, "unavailable")
    assert refused.headers["retry-after"]
    await close(space, run)
    await close(foreign, theirs)
    answers = await asyncio.gather(*watching)
    assert all(events(answer)[-1][0] == "end" for answer in answers)
    assert not streams.open


async def test_a_page_that_is_closed_cuts_no_read_off(
    client: Client, app: FastAPI, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await started(client, space)
    workspace_id, run_id = space.actor.workspace_id, uuid.UUID(run["id"])
    state, begun, read_whole = run_overviews.state, asyncio.Event(), asyncio.Event()

    async def slow(work: UnitOfWork, *arguments: Any) -> Any:
        begun.set()
        await work.scalar(select(func.pg_sleep(0.2)))
        found = await state(work, *arguments)
        read_whole.set()
        return found

    async def watch() -> None:
        followed = run_events.AutomationRunWatch(workspace_id, run_id)
        async for _ in run_events.run_events(app.state.services, followed):
            pass

    monkeypatch.setattr(run_overviews, "state", slow)
    async with anyio.create_task_group() as page:
        page.start_soon(watch)
        await begun.wait()
        page.cancel_scope.cancel()
    assert read_whole.is_set()


async def test_a_stopping_process_lets_its_streams_end(
    client: Client, space: Space, streams: Streams, told: list[str]
) -> None:
    run = await started(client, space)
    watching = asyncio.create_task(client.get(f"/v1/runs/{run['id']}/events"))
    await until_each_knows(told)
    streams.closing = True
    answer = await watching
    assert [name for name, _ in events(answer)] == ["state"]
    assert refusal(await client.get(f"/v1/runs/{run['id']}/events")) == (503, "unavailable")


async def test_a_run_says_since_when_it_waits_for_a_lost_worker(
    client: Client, space: Space
) -> None:
    run = await started(client, space)
    place = f"{space.path}/automations/{run['automationId']}/runs/{run['id']}"
    worker, fresh = new_id(), new_id()
    async with space.database.transaction() as work:
        await beat(work, worker, "there", 1, list(Queue))
    try:
        assert "waitingForWorkerSince" not in read(await client.get(place))["metadata"]
        async with space.database.transaction() as work:
            ago = {"seen_at": work.now - timedelta(seconds=30)}
            await work.execute(update(worker_process).values(ago))
        since = read(await client.get(place))["metadata"]["waitingForWorkerSince"]
        assert since == run["createdAt"]
        overview = read(await client.get(f"/v1/runs/{run['id']}"))
        assert overview["run"]["metadata"]["waitingForWorkerSince"] == since
        async with space.database.transaction() as work:
            await beat(work, fresh, "there", 2, list(Queue))
        assert "waitingForWorkerSince" not in read(await client.get(place))["metadata"]
    finally:
        async with space.database.transaction() as work:
            await leave(work, worker)
            await leave(work, fresh)


@pytest.mark.parametrize(
    ("config", "ago", "due"),
    [
        ({}, {}, None),
        ({"timeoutSeconds": 3600}, {}, None),
        ({"timeoutSeconds": 3600}, {"due_at": 10}, 10),
        ({"timeoutSeconds": 3600}, {"due_at": 60}, 60),
        ({"reminderSeconds": 500}, {"created_at": 20}, None),
        ({"reminderSeconds": 500}, {"created_at": 505}, 5),
        ({"reminderSeconds": 500}, {"created_at": 1505}, 5),
        ({}, {"resolved_at": 10}, 10),
        ({}, {"resolved_at": 60}, 60),
    ],
)
async def test_a_run_that_waits_says_since_when_it_lacks_a_worker(
    client: Client, space: Space, config: Json, ago: Mapping[str, int], due: int | None
) -> None:
    """Some seconds ago its wait was over, a reminder was due, or people had decided."""
    path = await run_of(client, space, approval(role="owner", **config))
    run_id = UUID(path.rpartition("/")[2])
    async with space.database.transaction() as work:
        this_run = update(automation_run).where(automation_run.c.id == run_id)
        await work.execute(this_run.values(created_at=work.now - timedelta(hours=1)))
        changed_at = work.now
        for table in (node_run, run_wait):
            values: dict[str, Any] = {
                name: work.now - timedelta(seconds=seconds)
                for name, seconds in ago.items()
                if name in table.c and (table is run_wait or name == "due_at")
            }
            if "resolved_at" in values:
                values["outcome"] = "approved"
            if values:
                await work.execute(update(table).where(table.c.run_id == run_id).values(values))
    async with lost_worker(space) as lost:
        shown = read(await client.get(path))
        since = shown["metadata"].get("waitingForWorkerSince")
        overview = read(await client.get(f"/v1/runs/{run_id}"))["run"]
    assert shown["status"] == "waiting"
    assert overview["metadata"].get("waitingForWorkerSince") == since
    if due is None:
        assert since is None
    else:
        expected = max(lost, changed_at - timedelta(seconds=due))
        assert abs(datetime.fromisoformat(since) - expected) < timedelta(seconds=1)
    assert "waitingForWorkerSince" not in read(await client.get(path))["metadata"]
