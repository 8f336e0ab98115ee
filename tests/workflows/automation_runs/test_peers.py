"""Flows of other automation products, run here: the same nodes, in the order those document.

Each document in `peers/` has the structure of a published flow of n8n or Windmill and names its
source. Those products run side branches one after the other, we run them at once; so what must
agree is every pair of nodes of which one leads to the other.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from models.automation.automation_runs import commands as runs
from models.automation.automation_runs.shapes import AutomationRunDetail, NodeRunShape, RunNow
from models.automation.automations import commands as automations
from models.automation.automations.import_export import ImportAutomation, import_automation
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.automation.waits.commands import ResumeNode, resume
from models.core.base import Id
from tests.support.endpoint import reply
from tests.support.engine import KEYS, Engine

pytestmark = pytest.mark.long

Json = dict[str, Any]
PEERS = {path.stem: path for path in sorted((Path(__file__).parent / "peers").glob("*.json"))}


@pytest_asyncio.fixture
async def service() -> AsyncIterator[str]:
    """`/succeeds-at/<n>` fails until it was asked n times, `/never` always."""
    asked: Counter[str] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        asked[path] += 1
        needed = path.rpartition("/")[2]
        good = needed.isdigit() and asked[path] >= int(needed)
        writer.write(reply(200 if good else 503, {"asked": asked[path]}))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"


async def _started(engine: Engine, peer: Json, service: str) -> tuple[Id, Id]:
    """The ids of the imported automation and of its run."""
    body = ImportAutomation.model_validate_json(json.dumps({"document": peer["document"]}))
    async with engine.database.transaction() as work:
        made = await import_automation(work, engine.actor, KEYS, body)
    assert made.reference_issues == []
    async with engine.database.transaction() as work:
        switch = UpdateAutomation(enabled=True)
        await automations.update_automation(work, engine.actor, KEYS, made.id, switch)
        await automations.publish(work, engine.actor, KEYS, made.id, PublishAutomation())
    payload = {**peer["expect"].get("payload", {}), "url": service}
    async with engine.database.transaction() as work:
        body_ = RunNow.model_validate({"triggerPayload": payload})
        return made.id, (await runs.run_now(work, engine.actor, made.id, body_)).id


async def _resumed(
    engine: Engine, automation_id: Id, run_id: Id, waits: Mapping[str, Json]
) -> None:
    for node_id, data in waits.items():
        await engine.until(
            automation_id,
            run_id,
            lambda run: node_id in _waiting(run),  # noqa: B023  # now
        )
        async with engine.database.transaction() as work:
            body = ResumeNode.model_validate({"data": data})
            await resume(work, engine.actor, automation_id, run_id, node_id, body)


def _waiting(run: AutomationRunDetail) -> list[str]:
    return [one["nodeId"] for one in run.metadata["waiting"]]


@pytest.mark.parametrize("name", PEERS)
async def test_a_flow_of_a_peer_runs_as_documented(engine: Engine, service: str, name: str) -> None:
    peer = json.loads(PEERS[name].read_text(encoding="utf-8"))
    expected = peer["expect"]
    automation_id, run_id = await _started(engine, peer, service)
    await _resumed(engine, automation_id, run_id, expected.get("resumes", {}))
    run = await engine.ended(automation_id, run_id)

    assert run.status == expected["status"], run.error
    ended: dict[str, list[NodeRunShape]] = {}
    for one in run.node_runs:
        ended.setdefault(one.node_id, []).append(one)
    skipped = {key for key, rows in ended.items() if all(one.status == "skipped" for one in rows)}
    assert skipped == set(expected.get("skipped", []))
    assert ended.keys() - skipped == set(expected["order"])
    failed = {key for key, rows in ended.items() if any(one.status == "failed" for one in rows)}
    assert failed >= set(expected.get("failed", []))
    for node_id, count in expected.get("attempts", {}).items():
        assert [one.attempt for one in ended[node_id]] == [count], node_id
    for node_id, scopes in expected.get("scopes", {}).items():
        succeeded = [one.scope_key for one in ended[node_id] if one.status == "succeeded"]
        assert sorted(succeeded) == scopes, node_id
    for node_id, output in expected.get("output", {}).items():
        assert ended[node_id][0].output == output
    _agrees(
        peer,
        {
            key: {one.scope_key: one.completed_at for one in ended[key] if one.status != "skipped"}
            for key in expected["order"]
        },
    )


def _agrees(peer: Json, ends: Mapping[str, Mapping[str, Any]]) -> None:
    """Every pair of the documented order that a path connects was completed in that order."""
    order = peer["expect"]["order"]
    graph = peer["document"]["graph"]
    loops = {node["id"] for node in graph["nodes"] if node["kind"] in {"for_each", "repeat"}}
    following: dict[str, set[str]] = {}
    for edge in graph["edges"]:
        if edge["from"] not in loops or edge["outcome"] != "item":
            following.setdefault(edge["from"], set()).add(edge["to"])
    checked = 0
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if second in _beyond(first, following):
                assert _in_order(ends[first], ends[second]), (first, second)
                checked += 1
            assert first not in _beyond(second, following), "the documented order is no order"
    assert checked


def _in_order(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether a node ended before another wherever both are in one iteration, or around one."""
    return all(
        before <= after
        for inner, before in first.items()
        for outer, after in second.items()
        if inner.startswith(outer) or outer.startswith(inner)
    )


def _beyond(start: str, following: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for node_id in following.get(waiting.pop(), ()):
            if node_id not in found:
                found.add(node_id)
                waiting.append(node_id)
    return found
