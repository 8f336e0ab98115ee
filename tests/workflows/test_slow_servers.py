"""Servers that one workspace asks and that do not answer, beside the work of another."""

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from activities.database_errors import UNEXPECTED_ATTEMPTS
from activities.jobs.data_sources import SourcePreviews
from activities.turns import SlotShares
from cli.worker_process import ACTIVITY_SLOTS, OVERFLOW_SLOTS
from models.core.lifecycle.commands import RUNNING
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.endpoint import Endpoint, Serve, once, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import ENOUGH, eventually
from tests.support.spaces import Space, make_space

HELD = ACTIVITY_SLOTS // 2 + OVERFLOW_SLOTS
"""Calls of one workspace that a worker makes at once: its share, and all that overflows."""


async def _until_asked(endpoint: Endpoint, count: int) -> None:
    async def asked() -> bool:
        return len(endpoint.requests) >= count

    await eventually(asked, f"{count} requests at once")


@dataclass
class _SlowAnswer:
    """An answer without an end until `released`: no silence is long enough to end its call."""

    released: asyncio.Event = field(default_factory=asyncio.Event)
    open: int = 0
    most_open: int = 0

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            await self._write(writer)
        finally:
            self.open -= 1

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 Answer\r\ncontent-type: application/json\r\n\r\n")
        while not self.released.is_set():
            writer.write(b" ")
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.released.wait()
        writer.write(b"{}")
        await writer.drain()


def _patient_call(url: str) -> dict[str, Any]:
    """A call that outlives the test, and the heartbeats that a busy machine sends late."""
    seconds, retry = 2 * ENOUGH, {"maxAttempts": 3}
    call = node("call", "http_request", url=url, timeoutSeconds=seconds, retry=retry)
    call["config"]["timeoutSeconds"] = seconds
    return call


@pytest.mark.long
@pytest.mark.takes(seconds=10)
async def test_a_run_ends_while_providers_that_do_not_answer_are_asked(
    client: Client, space: Space, engine: Engine, serve: Serve
) -> None:
    released = asyncio.Event()
    silent = await serve(once(released, reply(404)))
    config = {"baseUrl": silent.url, "auth": "none"}
    body = {"provider": "webdav", "label": "D", "config": config}
    made = await client.post(f"{space.path}/integrations/connections", json=body)
    connection = made.json()["data"]["id"]
    at_once = RUNNING[WorkflowKind.PROVIDER_CALL]
    assert at_once > engine.database.connections
    quiet = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    quick = await quiet.publish(graph(node("one", "transform", output={})))
    path = f"{space.path}/integrations/resources/browse"
    browses = [
        asyncio.create_task(
            client.post(path, json={"connectionId": connection, "parentExternalId": f"of {number}"})
        )
        for number in range(at_once)
    ]
    await _until_asked(silent, at_once)
    try:
        run = await quiet.ended(quick.id, await quiet.start(quick.id))
        assert run.status == "succeeded"
        assert not any(browse.done() for browse in browses)
    finally:
        released.set()
        await asyncio.gather(*browses)


@pytest.mark.takes(seconds=10)
@pytest.mark.usefixtures("engine")
async def test_a_preview_is_shown_while_others_wait_for_their_servers(
    client: Client, space: Space, serve: Serve
) -> None:
    released = asyncio.Event()
    silent, quick = await serve(once(released, reply(404))), await serve(reply(200, [{"a": 1}]))

    async def preview(url: str) -> Any:
        body = {"kind": "http_json", "config": {"url": url}}
        return await client.post(f"{space.path}/data-sources/preview", json=body)

    waiting = [asyncio.create_task(preview(silent.url)) for _ in range(6)]
    try:
        await _until_asked(silent, len(waiting))
        shown = await preview(quick.url)
        assert (shown.status_code, shown.json()["data"]["rows"]) == (200, [{"a": 1}])
        assert not any(one.done() for one in waiting)
    finally:
        released.set()
        await asyncio.gather(*waiting)


@pytest.mark.long
@pytest.mark.takes(seconds=10)
@pytest.mark.usefixtures("engine")
async def test_a_defect_fails_its_work_soon_and_says_so(
    client: Client, space: Space, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def broken(*_: object) -> None:
        nonlocal tried
        tried += 1
        raise KeyError("canary")

    monkeypatch.setattr(SourcePreviews, "_read", broken)
    body = {"kind": "http_json", "config": {"url": (await serve(reply(200, []))).url}}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    assert (answer.status_code, tried) == (502, UNEXPECTED_ATTEMPTS)
    assert "Internal error" in answer.text
    assert "canary" not in answer.text


@pytest.mark.long
@pytest.mark.takes(seconds=20)
async def test_a_node_is_executed_while_another_workspace_holds_its_share_of_calls(
    engine: Engine, serve: Serve
) -> None:
    answer = _SlowAnswer()
    slow, answering = await serve(answer), await serve(reply(200))
    calling = await engine.publish(graph(_patient_call(slow.url)))
    quiet = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    quick = await quiet.publish(graph(node("call", "http_request", url=answering.url)))
    runs = [await engine.start(calling.id) for _ in range(HELD + 20)]
    await _until_asked(slow, HELD)
    try:
        run = await quiet.ended(quick.id, await quiet.start(quick.id))
        assert run.status == "succeeded"
        assert answer.most_open <= HELD
    finally:
        answer.released.set()
    ended = [await engine.ended(calling.id, run_id) for run_id in runs]
    assert {run.status for run in ended} == {"succeeded"}
    assert [run.node_runs[0].attempt for run in ended].count(1) >= HELD


def test_a_workspace_holds_half_of_the_slots_and_each_next_one_half_of_the_rest() -> None:
    shares, held = SlotShares(16), dict[str, int]()
    slots = []
    for workspace in ("first", "second", "third", "first"):
        while True:
            slot = shares.slot(workspace)
            if not slot.__enter__():
                break
            slots.append(slot)
            held[workspace] = held.get(workspace, 0) + 1
    assert held == {"first": 8, "second": 4, "third": 2}
    with shares.slot("fourth") as within:
        assert within
    for slot in slots:
        slot.__exit__(None, None, None)
    with shares.slot("first") as within:
        assert within
