"""Rows that come into a database while things break, and the judge of what must be true then."""

from collections import Counter
from typing import Any

import psycopg

from tests.chaos.queries import fetch
from tests.support.patience import eventually

ROWS = 9_000


async def judge(url: str, run_id: Any) -> None:
    """The run has brought in every row once, its counts say so, and nothing is left staged."""
    query = (
        "SELECT status, stats, error, result ->> 'databaseId' FROM data_source_run WHERE id = %s"
    )
    [(status, stats, error, database_id)] = await fetch(url, query, run_id)
    assert (status, error) == ("succeeded", None)
    assert (stats["rowsFetched"], stats["rowsInserted"], stats["rowsSkipped"]) == (ROWS, ROWS, 0)
    query = "SELECT title, data FROM record WHERE database_id = %s"
    titles = Counter(title for title, _ in await fetch(url, query, database_id))
    assert titles == Counter(f"c{n}" for n in range(ROWS))
    assert await fetch(url, "SELECT FROM staged_row WHERE run_id = %s", run_id) == []


async def in_stage(url: str, stage: str) -> None:
    """Wait until rows are in a stage of their way."""

    async def is_in_stage() -> bool:
        query = "SELECT FROM data_source_run WHERE progress ->> 'stage' = %s"
        try:
            return bool(await fetch(url, query, stage))
        except psycopg.OperationalError:
            return False

    await eventually(is_in_stage, f"the stage {stage}")
