"""kill -9 of the worker while runs loop, wait for an event and call other automations."""

import asyncio
import random
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from models.automation.automation_runs.rules import RunStatus
from models.automation.waits.commands import ResumeNode, resume
from tests.chaos.conftest import MakeDatabase
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.chaos.story import PATIENCE, ended
from tests.support.engine import Engine, graph, node
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40), pytest.mark.long]

Json = dict[str, Any]

RUNS = 4
ITEMS = 12
KILLS = 4
SEED = 20261121


def _record(node_id: str, database_id: UUID, title: str) -> Json:
    value = {"type": "template", "value": title}
    return node(node_id, "create_record", databaseId=str(database_id), title=value)


def _called(database_id: UUID) -> Json:
    return graph(
        node("pause", "delay", seconds=1),
        _record("note", database_id, "called {{ trigger.run }}"),
        edges=[("pause", "note")],
    )


def _long(database_id: UUID, called_id: UUID, sink: Sink) -> Json:
    """A loop of calls and records, a call of another automation and a wait, then one record."""
    return graph(
        node("each", "for_each", items=list(range(ITEMS)), parallelism=4),
        node(
            "call",
            "http_request",
            method="POST",
            url=sink.url("flaky"),
            body={"index": {"type": "item", "value": "$index"}},
            retry=PATIENCE,
            timeoutSeconds=4,
        ),
        _record("item", database_id, "item {{ index }} {{ run.id }}"),
        {
            "id": "sub",
            "kind": "call_automation",
            "config": {
                "automationId": str(called_id),
                "input": {"run": {"type": "run", "value": "id"}},
            },
        },
        node("ask", "wait_event"),
        node("all", "join", mode="all"),
        _record("last", database_id, "last {{ run.id }}"),
        edges=[
            ("each", "call", "item"),
            ("call", "item"),
            ("each", "all", "done"),
            ("sub", "all"),
            ("ask", "all"),
            ("all", "last"),
        ],
    )


async def test_a_killed_worker_repeats_no_iteration_no_wait_and_no_child(
    idle: Engine, workers: Workers, new_database: MakeDatabase, sink: Sink
) -> None:
    dice = random.Random(SEED)  # noqa: S311  # the same instants every time
    database_id = await new_database(idle)
    called = await idle.publish(_called(database_id))
    automation = await idle.publish(_long(database_id, called.id, sink))
    run_ids = [await idle.start(automation.id) for _ in range(RUNS)]
    worker = await workers.start()
    await worker.ready()
    for kill in range(KILLS):
        await asyncio.sleep(dice.uniform(0.4, 2.0))
        worker.process.kill()
        await worker.ended()
        if kill == KILLS // 2:
            for run_id in run_ids:
                await _resume(idle, automation.id, run_id)
        worker = await workers.start()
        await worker.ready()
    url = str(idle.database.engine.url.render_as_string(hide_password=False))
    url = url.replace("postgresql+psycopg", "postgresql")
    statuses = await ended(url, automation.id, RUNS)
    assert statuses == {RunStatus.SUCCEEDED: RUNS}

    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", database_id)
    assert Counter(title for (title,) in titles) == Counter(
        [f"item {index} {run_id}" for index in range(ITEMS) for run_id in run_ids]
        + [f"{name} {run_id}" for name in ("called", "last") for run_id in run_ids]
    )
    keys = {f"{run_id}:call:each:{index}" for index in range(ITEMS) for run_id in run_ids}
    assert sink.counts().keys() == keys
    children = await fetch(
        url, "SELECT parent_run_id, status FROM automation_run WHERE automation_id = %s", called.id
    )
    assert Counter(children) == Counter((run_id, "succeeded") for run_id in run_ids)


async def _resume(engine: Engine, automation_id: UUID, run_id: UUID) -> None:
    body = ResumeNode.model_validate({"data": {"go": True}})
    async with engine.database.transaction() as work:
        await resume(work, engine.actor, automation_id, run_id, "ask", body)
