"""Rows of a workspace that has been at work for long, written past the API and its triggers."""

from typing import Any, LiteralString

import psycopg

from bench.graphs import THREE_QUICK
from bench.platform import Platform

DAYS = 20
"""Days over which the rows are spread."""
_AGE = "make_interval(secs => random() * 86400 * %(days)s::int)"

_RUNS = f"""
WITH made AS (
INSERT INTO automation_run (id, workspace_id, automation_id, automation_version_id, graph_checksum,
    status, source, trigger_payload, options, output, attributes, created_at, started_at,
    completed_at)
SELECT uuidv7(-age), workspace_id, automation_id, automation_version_id, graph_checksum,
    CASE WHEN n %% 1009 = 0 THEN 'failed' WHEN n %% 4999 = 0 THEN 'timed_out' ELSE 'succeeded' END,
    CASE WHEN n %% 2003 = 0 THEN 'schedule' ELSE 'manual' END,
    trigger_payload, options, output, CASE WHEN n %% 2 = 0 THEN
        jsonb_build_object('orderNumber', 'N-' || n, 'region', 'north') END,
    now() - age, now() - age, now() - age
FROM automation_run run,
    (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
WHERE run.id = %(run_id)s
RETURNING id, workspace_id)
INSERT INTO ended_run (run_id, workspace_id) SELECT id, workspace_id FROM made
"""  # noqa: S608
_NODES = """
INSERT INTO node_run (run_id, node_id, scope_key, workspace_id, node_kind, status, attempt, output,
    error_code, started_at, completed_at)
SELECT run.id, one.node_id, one.scope_key, one.workspace_id, one.node_kind,
    CASE WHEN run.status = 'failed' AND one.node_id = 'c' THEN 'failed' ELSE one.status END,
    one.attempt, one.output,
    CASE WHEN run.status = 'failed' AND one.node_id = 'c' THEN 'expression_failed' END,
    run.started_at, run.completed_at
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
_ACTION_RUNS = f"""
INSERT INTO action_run (id, workspace_id, action_id, kind, config, status, input, started_at,
    completed_at)
SELECT uuidv7(-age), %(workspace_id)s, %(action_id)s, 'transform', '{{}}', 'succeeded', '{{}}',
    now() - age, now() - age
FROM (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
"""  # noqa: S608
_REFRESHES = f"""
INSERT INTO data_source_run (id, workspace_id, data_source_id, status, trigger, plan, progress,
    stats, created_at, started_at, completed_at)
SELECT uuidv7(-age), %(workspace_id)s, %(data_source_id)s, 'succeeded', 'schedule', '{{}}', '{{}}',
    '{{}}', now() - age, now() - age, now() - age
FROM (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
"""  # noqa: S608
_DELIVERIES = f"""
INSERT INTO delivery (id, workspace_id, channel, subject_id, target_id, input, status, attempts,
    executing, executions, expires_at, created_at, completed_at)
SELECT uuidv7(-age), %(workspace_id)s, 'webhook', uuidv7(), %(endpoint_id)s,
    '{{"type": "run.status", "timestamp": "2026-01-01T00:00:00Z"}}',
    CASE WHEN n %% 1009 = 0 THEN 'failed' ELSE 'delivered' END, 1, false, 1, now(),
    now() - age, now() - age
FROM (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
"""  # noqa: S608
_NOTIFICATIONS = f"""
INSERT INTO notification (id, workspace_id, user_id, kind, title, body, data, read_at, archived_at,
    created_at)
SELECT uuidv7(-age), workspace_id, user_id, 'automation_failed', 'Failed', '', '{{}}', now(),
    CASE WHEN n %% 1009 <> 0 THEN now() END, now() - age
FROM workspace_member,
    (SELECT n, {_AGE} AS age FROM generate_series(%(first)s::int, %(last)s::int) n OFFSET 0) old
WHERE workspace_id = %(workspace_id)s AND role = 'owner'
"""  # noqa: S608
_EXPIRE_EVENTS = """
UPDATE workspace_event SET at = at - interval '200 days'
WHERE seq IN (SELECT seq FROM workspace_event ORDER BY seq LIMIT %(last)s::int)
"""
_BESIDE = (
    _EVENTS,
    _REQUEST_LOGS,
    _RECORDS,
    _ACTION_RUNS,
    _REFRESHES,
    _DELIVERIES,
    _NOTIFICATIONS,
)
_NOTHING: dict[str, Any] = {"output": {}}
_LOGGED = ("automation_run", "workspace_event", "action_run", "data_source_run", "notification")
"""Tables whose triggers write the log, which is filled by itself."""
FILLED = (*_LOGGED, "node_run", "request_log", "record", "delivery", "ended_run")


class LongHistory:
    """A workspace whose past grows to the requested sizes."""

    def __init__(self, platform: Platform, run_id: str, **ids: str) -> None:
        self.ids = ids
        """Of the one database, action, data source and endpoint that all rows belong to."""
        self._platform = platform
        self._values: dict[str, Any] = {
            "workspace_id": platform.connection["workspaceId"],
            "run_id": run_id,
            "days": DAYS,
            **ids,
        }
        self._rows = 0

    @classmethod
    async def of(cls, platform: Platform, automation_id: str) -> "LongHistory":
        """A past made of copies of one real run, and of a row of each resource of a run."""
        run_id = await platform.start(automation_id)
        await platform.settled()
        place = f"/v1/workspaces/{platform.connection['workspaceId']}"
        fields = [{"label": "Price", "kind": "number"}]
        url = "http://127.0.0.1:8009/"
        bodies: dict[str, tuple[str, dict[str, Any]]] = {
            "database_id": ("databases", {"label": "Long", "fields": fields}),
            "action_id": ("actions", {"label": "Long", "kind": "transform", "config": _NOTHING}),
            "data_source_id": (
                "data-sources",
                {"label": "Long", "kind": "http_json", "config": {"url": url}},
            ),
            "endpoint_id": ("webhook-endpoints", {"url": url, "eventTypes": ["item.deleted"]}),
        }
        made = {
            name: (await platform.post(f"{place}/{path}", body))["id"]
            for name, (path, body) in bodies.items()
        }
        return cls(platform, run_id, **made)

    async def grow(self, rows: int) -> None:
        """Have that many ended runs with their nodes, and as many rows of all they leave."""
        values = {**self._values, "first": self._rows + 1, "last": rows}
        await self._fill(values, _RUNS, _NODES, *_BESIDE)
        self._rows = rows

    async def expire(self, rows: int) -> None:
        """Make that many more runs and request logs of 200 days ago, and age as many events."""
        values = {**self._values, "first": 1, "last": rows, "days": 0}
        runs, logs = (
            one.replace("now() - age", "now() - age - interval '200 days'")
            for one in (_RUNS, _REQUEST_LOGS)
        )
        await self._fill(values, runs, _NODES, logs, _EXPIRE_EVENTS)

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
