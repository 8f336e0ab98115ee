"""Rows of a workspace that has been at work for long, written past the API and its triggers."""

from typing import Any, LiteralString
from uuid import UUID

import psycopg

from bench.graphs import THREE_QUICK
from bench.platform import Platform

DAYS = 20
"""Over how many days the rows are spread."""
_AGE = "make_interval(secs => random() * 86400 * %(days)s::int)"

_RUNS = f"""
INSERT INTO automation_run (id, workspace_id, automation_id, automation_version_id, graph_checksum,
    status, source, trigger_payload, options, output, created_at, started_at, completed_at)
SELECT uuidv7(-age), workspace_id, automation_id, automation_version_id, graph_checksum,
    CASE WHEN n %% 1009 = 0 THEN 'failed' WHEN n %% 4999 = 0 THEN 'timed_out' ELSE 'succeeded' END,
    CASE WHEN n %% 2003 = 0 THEN 'schedule' ELSE 'manual' END,
    trigger_payload, options, output, now() - age, now() - age, now() - age
FROM automation_run run,
    (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
WHERE run.id = %(run_id)s
"""  # noqa: S608
_NODES = """
INSERT INTO node_run (run_id, node_id, scope_key, workspace_id, node_kind, status, attempt, output,
    started_at, completed_at)
SELECT run.id, one.node_id, one.scope_key, one.workspace_id, one.node_kind, one.status, one.attempt,
    one.output, run.started_at, run.completed_at
FROM automation_run run, node_run one
WHERE one.run_id = %(run_id)s
    AND NOT EXISTS (SELECT FROM node_run old WHERE old.run_id = run.id)
"""
_EVENTS = f"""
INSERT INTO workspace_event (seq, workspace_id, type, at, actor_type, data)
SELECT nextval('workspace_event_number'), %(workspace_id)s,
    CASE WHEN n %% 1009 = 0 THEN 'item.created' ELSE 'run.status' END,
    now() - {_AGE}, 'system', '{{}}'
FROM generate_series(%(first)s::int, %(last)s::int) n
"""  # noqa: S608
_REQUEST_LOGS = f"""
INSERT INTO request_log (id, workspace_id, principal_type, principal_id, method, path, status,
    duration_ms, created_at)
SELECT uuidv7(-age), %(workspace_id)s, 'user', %(workspace_id)s,
    CASE WHEN n %% 1009 = 0 THEN 'POST' ELSE 'GET' END, '/v1/items', 200, 1.5, now() - age
FROM (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
"""  # noqa: S608
_RECORDS = f"""
INSERT INTO record (id, workspace_id, database_id, title, data, archived, created_at, updated_at)
SELECT uuidv7(-age), %(workspace_id)s, %(database_id)s, 'Record ' || n,
    jsonb_build_object('price', n %% 1000), false, now() - age, now() - age
FROM (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
"""  # noqa: S608
_LOGGED = ("automation_run", "workspace_event")
"""Tables whose triggers write the log, which is filled by itself."""
FILLED = (*_LOGGED, "node_run", "request_log", "record")


class LongHistory:
    """A workspace whose past grows to the sizes that it is asked for."""

    def __init__(self, platform: Platform, run_id: str, database_id: str) -> None:
        self._platform = platform
        self._values: dict[str, Any] = {
            "workspace_id": platform.connection["workspaceId"],
            "run_id": run_id,
            "database_id": database_id,
            "days": DAYS,
        }
        self._rows = 0

    @classmethod
    async def of(cls, platform: Platform, automation_id: str) -> "LongHistory":
        """A past made of copies of one real run, and of records of one database."""
        run_id = await platform.start(automation_id)
        await platform.settled()
        place = f"/v1/workspaces/{platform.connection['workspaceId']}/databases"
        fields = [{"label": "Price", "kind": "number"}]
        made = await platform.post(place, {"label": "Long", "fields": fields})
        return cls(platform, run_id, made["id"])

    @property
    def database_id(self) -> UUID:
        return UUID(self._values["database_id"])

    async def grow(self, rows: int) -> None:
        """Have that many ended runs with their nodes, events, request logs and records."""
        values = {**self._values, "first": self._rows + 1, "last": rows}
        await self._fill(values, _RUNS, _NODES, _EVENTS, _REQUEST_LOGS, _RECORDS)
        self._rows = rows

    async def expire(self, rows: int) -> None:
        """Make that many more runs, which ended 200 days ago."""
        values = {**self._values, "first": 1, "last": rows, "days": 0}
        old = _RUNS.replace("now() - age", "now() - age - interval '200 days'")
        await self._fill(values, old, _NODES)

    async def _fill(self, values: dict[str, Any], *statements: LiteralString) -> None:
        """Write rows without the triggers that keep the log: the log is filled by itself."""
        async with await psycopg.AsyncConnection.connect(
            self._platform.database_url, autocommit=True
        ) as connection:
            for table in _LOGGED:
                await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            for statement in statements:
                await connection.execute(statement, values)
            for table in _LOGGED:
                await connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            for table in FILLED:
                await connection.execute(f"VACUUM ANALYZE {table}")


async def automation_of_three_nodes(platform: Platform) -> str:
    """A published automation whose runs are copied."""
    return await platform.publish("Long", THREE_QUICK)
