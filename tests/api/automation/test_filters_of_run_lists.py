"""Lists of runs by state and source: they hold what a look at all runs finds, and read little."""

import random
from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from sqlalchemy import insert, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from models.automation.automation_runs.filters import NEWEST_FIRST, RunFilter, newest
from models.automation.automation_runs.queries import runs_of, workspace_runs
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Level
from runtime.clock import utc_now
from tests.support.ageing import make_automation, run_row
from tests.support.automations import read
from tests.support.client import Client
from tests.support.spaces import Space

pytestmark = pytest.mark.long

PAGE = 5
MANY = 20_000
MOST_BUFFERS = 600


async def insert_runs(space: Space, rows: Sequence[dict[str, Any]]) -> None:
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run), rows)


async def pages(client: Client, path: str, **query: str) -> list[str]:
    """The ids of a list, page by page."""
    ids: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = read(await client.get(path, params={"limit": str(PAGE), **query, **cursor}))
        ids += [run["id"] for run in page["runs"]]
        if page.get("cursor") is None:
            return ids
        cursor = {"cursor": page["cursor"]}


async def test_every_state_and_source_lists_the_runs_that_have_them(
    client: Client, space: Space, foreign: Space
) -> None:
    dice = random.Random(7)  # noqa: S311  # the same runs each time
    versions = [await make_automation(space) for _ in range(2)]
    begin = utc_now() - timedelta(days=1)
    rows = [
        run_row(
            space,
            dice.choice(versions),
            status=dice.choice(list(RunStatus)).value,
            source=dice.choice(list(RunSource)[:4]).value,
            # Several at one moment: the id decides.
            created_at=begin + timedelta(minutes=dice.randrange(40)),
        )
        for _ in range(120)
    ]
    await insert_runs(space, rows)
    await insert_runs(foreign, [run_row(foreign, await make_automation(foreign))])
    rows.sort(key=lambda row: (row["created_at"], row["id"]), reverse=True)
    one = versions[0].automation_id
    lists = {
        f"{space.path}/automation-runs": rows,
        f"{space.path}/automations/{one}/runs": [
            row for row in rows if row["automation_id"] == one
        ],
    }
    statuses = [None, RunStatus.FAILED, RunStatus.SUCCEEDED, RunStatus.QUEUED, RunStatus.WAITING]
    sources = [None, RunSource.MANUAL, RunSource.REPLAY, RunSource.FORM]
    for (path, listed), status, source in product(lists.items(), statuses, sources):
        query = {"status": status, "source": source}
        expected = [
            str(row["id"])
            for row in listed
            if status in (None, row["status"]) and source in (None, row["source"])
        ]
        given = {name: value.value for name, value in query.items() if value is not None}
        assert await pages(client, path, **given) == expected, given


async def test_a_rare_state_or_source_is_found_without_reading_all_runs(space: Space) -> None:
    version = await make_automation(space)
    begin = utc_now() - timedelta(days=30)
    rows = [
        run_row(space, version, created_at=begin + timedelta(seconds=number))
        for number in range(MANY)
    ]
    for row in rows[:3]:
        row.update(status="failed", source="replay")
    await insert_runs(space, rows)
    async with space.database.transaction() as work:
        await work.execute(text("ANALYZE automation_run"))
    lists = {
        "workspace": workspace_runs(space.actor, Level.VIEW),
        "automation": runs_of(space.id, version.automation_id),
    }
    filters = [
        RunFilter(status=RunStatus.FAILED),
        RunFilter(source=RunSource.REPLAY),
        RunFilter(status=RunStatus.FAILED, source=RunSource.REPLAY),
        RunFilter(status=RunStatus.RUNNING),
        RunFilter(status=RunStatus.SUCCEEDED, source=RunSource.WEBHOOK),
        RunFilter(),
    ]
    read_buffers = {
        (name, index): await buffers(space, newest(runs, wanted, 31))
        for (name, runs), (index, wanted) in product(lists.items(), enumerate(filters))
    }
    assert max(read_buffers.values()) < MOST_BUFFERS, read_buffers


async def buffers(space: Space, runs: Any) -> int:
    """The pages that PostgreSQL looks at for the first 31 of these runs."""
    page = runs.order_by(*NEWEST_FIRST).limit(31)
    compiled = page.compile(dialect=PGDialect_psycopg(), compile_kwargs={"literal_binds": True})
    plan = text(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {str(compiled).replace(':', chr(92) + ':')}"
    )
    async with space.database.transaction() as work:
        top = (await work.scalar(plan))[0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
