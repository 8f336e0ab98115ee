"""A look reads few rows, however many runs a workspace has."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert, text

from models.automation.alert_rules import queries
from models.automation.automation_runs.tables import automation_run
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from runtime.database import libpq_url
from tests.support.ageing import make_automation, run_row
from tests.support.alerts import make_rule
from tests.support.plans import forget_rows, recorded_statements, rows_read
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

RUNS = 100_000
MANY_ENDED = """
INSERT INTO automation_run (id, workspace_id, automation_id, automation_version_id, graph_checksum,
    status, source, trigger_payload, options, created_at, started_at, completed_at)
SELECT uuidv7(:long_ago), workspace_id, automation_id, automation_version_id, graph_checksum,
    CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'succeeded' END, source, trigger_payload, options,
    created_at - interval '1 day', created_at - interval '1 day', created_at - interval '1 day'
FROM automation_run, generate_series(1, :runs) AS n WHERE id = :id
"""


async def test_no_look_goes_through_all_runs(
    space: Space, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It counts rows. Of a busy machine a look may take longer than it should.
    monkeypatch.setattr(queries, "LONGEST_CHECK", "60s")
    version = await make_automation(space)
    row = run_row(space, version, completed_at=utc_now() - timedelta(days=2))
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        many = {"id": row["id"], "runs": RUNS, "long_ago": timedelta(days=-1)}
        await work.execute(text(MANY_ENDED), many)
    one = {"automationId": version.automation_id}
    conditions: list[dict[str, Any]] = [
        {"kind": "failures", "runs": 1, "minutes": 60},
        {"kind": "failures", "runs": 1, "minutes": 60, "query": one},
        {"kind": "silence", "minutes": 60, "query": one},
        {"kind": "duration", "minutes": 1},
        {"kind": "queue_age", "minutes": 1},
    ]
    url = libpq_url(settings.database_url.get_secret_value())
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        # Statistics of before would have the planner take few rows for many, and many for few.
        await connection.execute("ANALYZE automation_run, automation, item")
        for condition in conditions:
            rule = await make_rule(space, condition)
            with recorded_statements(monkeypatch) as statements:
                async with space.database.transaction() as work:
                    assert not (await queries.test_rule(work, space.actor, rule.id)).holds
            looks = [one for one in statements if "automation_run" in one[0]]
            assert looks
            for look in looks:
                assert await rows_read(connection, look) < 5_000, condition
    await forget_rows(url, "workspace_id = %s", space.id, ["automation_run", "workspace_event"])
