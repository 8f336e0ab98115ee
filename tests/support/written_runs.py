"""Runs with their nodes, written as rows: what came of them is chosen, and not executed."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import insert

from models.automation.automation_runs.tables import automation_run, node_run
from runtime.clock import utc_now
from tests.support.ageing import run_row
from tests.support.spaces import Space

Json = dict[str, Any]
BEGIN = utc_now() - timedelta(hours=5)


def node(node_id: str, place: int, **values: Any) -> Json:
    """The row of a node that began this number of seconds after its run, and took half a second."""
    return {
        "node_id": node_id,
        "scope_key": "",
        "node_kind": "transform",
        "status": "succeeded",
        "attempt": 1,
        "outcome": "success",
        "input": {"n": 1},
        "output": {"n": 1},
        "error": None,
        "case_key": None,
        "place": place,
        **values,
    }


async def insert_run(
    space: Space, version: Any, number: int, nodes: Sequence[Json] = (), **values: Any
) -> str:
    """A run of a version with its nodes; a higher number came later."""
    began = BEGIN + timedelta(minutes=number)
    times = {"created_at": began, "started_at": began}
    row = run_row(
        space,
        version,
        **{**times, "completed_at": began + timedelta(seconds=30), **values},
    )
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        for one in nodes:
            start = began + timedelta(seconds=one["place"])
            times = {"started_at": start, "completed_at": start + timedelta(seconds=0.5)}
            content = {name: value for name, value in one.items() if name != "place"}
            owner = {"run_id": row["id"], "workspace_id": space.id}
            await work.execute(insert(node_run).values({**owner, **times, **content}))
    return str(row["id"])
