"""The steps of docs/scaling.md that partition the log of workspaces by month, by hand."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from models.messages.workspace_events.log import purge_events
from runtime.database import Database
from tests.support.postgres import migrated_database

pytestmark = pytest.mark.long

_GUIDE = Path("docs/scaling.md")
_WORKSPACE = "0198c0de-0000-7000-8000-000000000001"
_INSERT = """
INSERT INTO workspace_event (workspace_id, type, at, actor_type, data)
VALUES (%s, 'run.status', %s, 'system', '{}') RETURNING seq, tableoid::regclass::text
"""


@pytest.fixture
def partitioned() -> Iterator[str]:
    """A database with events of September and November, which the steps have partitioned."""
    block = re.search(r"```sql\n(.*?)```", _GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None, "the guide shows the steps"
    with migrated_database("months") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for day in ("2026-09-10", "2026-11-10"):
                connection.execute(_INSERT, (_WORKSPACE, day))
            for step in re.split(r";\n", block[1].strip()):
                connection.execute(step.encode())
        yield url


async def test_events_go_to_their_months(partitioned: str) -> None:
    days = {
        "2026-11-20": "workspace_event_past",
        "2027-01-05": "workspace_event_2027_01",
        "2027-09-05": "workspace_event_rest",
    }
    with psycopg.connect(partitioned, autocommit=True) as connection:
        rows = [connection.execute(_INSERT, (_WORKSPACE, day)).fetchone() for day in days]
    assert rows == [(3 + place, name) for place, name in enumerate(days.values())]


async def test_the_sweep_and_a_drop_remove_the_old(partitioned: str) -> None:
    database = Database(partitioned)
    async with database.transaction() as work:
        assert await purge_events(work, datetime(2026, 10, 1, tzinfo=UTC)) == 1
        await work.execute(text("DROP TABLE workspace_event_past"))
        left = await work.scalar(text("SELECT count(*) FROM workspace_event"))
    await database.close()
    assert left == 0
