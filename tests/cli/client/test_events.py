"""Trigger events in a terminal, as a person types the commands against a server that listens."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received
from models.automation.inbox.store import keep
from runtime.configuration.settings import Settings
from runtime.ids import new_id
from tests.cli.client.test_runs import Shell
from tests.support.automations import DAY, read
from tests.support.client import Client
from tests.support.patience import found_when
from tests.support.run_operations import carry_out
from tests.support.server import serving
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=40)


async def operations(client: Client, path: str) -> list[dict[str, Any]]:
    return list(read(await client.get(path))["runOperations"])


async def _replay_all(client: Client, space: Space, shell: Shell, automation_id: str) -> None:
    """Preview, decline and carry out a replay of every event that fits."""
    everything = ("events", "replay", "--all", "--automation", automation_id, "--text", "17")
    counted = await shell.run(*everything, "--dry-run", "--json")
    assert counted.code == 0, counted.err
    assert (counted.json["fitting"], counted.json["redacted"]) == (1, 0)
    declined = await shell.run(*everything, typed="n\n")
    assert (declined.code, "1 events fit." in declined.out) == (1, True)
    path = f"{space.path}/run-operations"
    assert await operations(client, path) == [], "nothing has begun"
    begun = asyncio.create_task(shell.run(*everything, "--test", "--yes"))
    (operation,) = await found_when(lambda: operations(client, path), bool)
    await carry_out(space.database, operation)
    ended = await begun
    assert ended.code == 0, ended.err
    assert "1 of 1: 1 started, 0 skipped, 0 failed." in ended.out


@pytest.mark.long
async def test_events_are_listed_shown_and_replayed(
    client: Client, space: Space, settings: Settings, tmp_path: Path
) -> None:
    body = {"label": "\x1b[31mOrders", "enabled": True, "graph": DAY}
    made = read(await client.post(f"{space.path}/automations", json=body), 201)
    path = f"{space.path}/automations/{made['id']}"
    read(await client.post(f"{path}/publish", json={}))
    automation_id = type(space.id)(made["id"])
    event = Received(new_id(), space.id, EventSource.CALL, automation_id, {"order": 17})
    term = f"trigger.order > 20 && {' && '.join(['true'] * 40)}"
    detail = {"term": term, "value": {"trigger.order": 17}}
    async with space.database.transaction() as work:
        await keep(work, event, {automation_id: Judgement(EventOutcome.FILTERED, detail=detail)})
    shell, event_id = Shell(tmp_path), str(event.id)
    async with serving(settings) as server:
        add = ("profile", "add", "here", "--url", server.url)
        assert (await shell.run(*add, typed=f"{space.token}\n")).code == 0
        listed = await shell.run("events", "list", "--outcome", "filtered", "--text", "17")
        assert listed.code == 0, listed.err
        cells = listed.out.split("\t")
        assert (cells[0], cells[2], cells[4]) == (event_id, "call", "filtered")
        assert json.loads(cells[6]) == detail
        assert "\x1b" not in listed.out
        assert (await shell.run("events", "list", "--source", "schedule", "--json")).json[
            "events"
        ] == []
        shown = (await shell.run("events", "show", event_id, "--json")).json
        assert shown["payload"] == {"order": 17}
        tried = await shell.run("events", "replay", event_id, "--dry-run", "--json")
        assert tried.code == 0, tried.err
        assert "automation_run" in {one["kind"] for one in tried.json["counts"]}
        replayed = await shell.run("events", "replay", event_id, "--test", "--json")
        assert replayed.code == 0, replayed.err
        assert (replayed.json["outcome"], replayed.json["replay"]) == ("run", True)
        told = (await shell.run("events", "show", event_id)).out
        assert f"Orders: The trigger's filter did not match. {json.dumps(detail)}" in told
        assert "Orders, replay: Started a run." in told
        await _replay_all(client, space, shell, made["id"])
        unclear = await shell.run("events", "replay", "--all", "--text", "17")
        assert unclear.code == 2
        refused = await shell.run("events", "replay", event_id, "--version", "draft")
        assert (refused.code, refused.out) == (3, "")
