"""What runs while things break, and the judge of what must be true afterwards."""

import json
from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import UUID

import psycopg

from tests.chaos.queries import fetch
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.sink import Sink

Json = dict[str, Any]

PATIENCE = {
    "maxAttempts": 20,
    "initialDelaySeconds": 0.3,
    "backoffMultiplier": 1,
    "maxDelaySeconds": 1,
}
"""Enough attempts that no kill uses them up: what is proved is recovery, not giving up."""


def story(database_id: str, sink: Sink) -> Json:
    """A record, a flaky call beside a wait, and a record when both are over."""
    return graph(
        _record("first", database_id),
        node("pause", "delay", seconds=1),
        node(
            "call",
            "http_request",
            method="POST",
            url=sink.url("flaky"),
            body={"run": {"type": "run", "value": "id"}},
            retry=PATIENCE,
            timeoutSeconds=4,
        ),
        node("both", "join", mode="all"),
        _record("last", database_id),
        edges=[
            ("first", "pause"),
            ("first", "call"),
            ("pause", "both"),
            ("call", "both"),
            ("both", "last"),
        ],
    )


def _record(node_id: str, database_id: str) -> Json:
    title = {"type": "template", "value": f"{node_id} {{{{ run.id }}}}"}
    return node(node_id, "create_record", databaseId=database_id, title=title)


async def ended(url: str, automation_id: Any, expected: int) -> Counter[str]:
    """The statuses of an automation's runs once `expected` of them have ended."""

    async def have_ended() -> bool:
        statuses = await _statuses(url, automation_id)
        return statuses.total() - _open(statuses) >= expected

    await eventually(have_ended, what=f"the end of {expected} runs")
    return await _statuses(url, automation_id)


def _open(statuses: Counter[str]) -> int:
    return statuses["queued"] + statuses["running"] + statuses["waiting"]


async def _statuses(url: str, automation_id: Any) -> Counter[str]:
    try:
        rows = await fetch(
            url, "SELECT status FROM automation_run WHERE automation_id = %s", automation_id
        )
    except psycopg.OperationalError:
        return Counter()  # it is being killed
    return Counter(status for (status,) in rows)


async def judge(
    url: str, automation_id: Any, database_id: Any, accepted: Collection[Any], sink: Sink
) -> None:
    """Nothing accepted is lost or doubled; every record exists once; repeated calls are equal."""
    accepted = {UUID(str(run_id)) for run_id in accepted}
    runs = await fetch(
        url, "SELECT id, status, error FROM automation_run WHERE automation_id = %s", automation_id
    )
    assert {run_id for run_id, _, _ in runs} == accepted
    assert [run for run in runs if run[1] != "succeeded"] == []

    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", database_id)
    assert Counter(title for (title,) in titles) == Counter(
        f"{name} {run_id}" for name in ("first", "last") for run_id in accepted
    )
    nodes = await fetch(
        url,
        "SELECT n.node_id, n.status FROM node_run n JOIN automation_run r ON r.id = n.run_id"
        " WHERE r.automation_id = %s",
        automation_id,
    )
    assert Counter(nodes) == Counter(
        {(name, "succeeded"): len(accepted) for name in ("first", "pause", "call", "both", "last")}
    )
    await _delivered(url)
    keys = {f"{run_id}:call:" for run_id in accepted}
    assert keys <= sink.counts().keys()
    for call in sink.calls:
        assert json.loads(call.body) == {"run": call.run_id}


async def _delivered(url: str) -> None:
    """Wait until nothing is left to tell Temporal."""

    async def is_empty() -> bool:
        return not await fetch(url, "SELECT id FROM outbox")

    await eventually(is_empty, what="the delivery of every intent")
