"""Refreshes of a data source: against COPY and against themselves, and how soon a cancel acts."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import psutil
from temporalio.client import Client, WorkflowExecutionStatus

from activities.heartbeats import HEARTBEAT_SECONDS
from bench import sheets
from bench.copies import CopyFloor
from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds
from runtime.temporal.workflow_kinds import WorkflowKind

ROWS = 50_000
CANCELLED_ROWS = 200_000
BEFORE_CANCEL = 0.3
"""Seconds that a stage has gone on when it is cancelled."""
STAGES = ("fetch", "stage", "apply")


async def refresh_rates(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Rows a second that a refresh changes, and finds unchanged."""
    changed = Figure(f"refresh of {ROWS} changed rows vs COPY", "1/s", at_least=0.25)
    bare = Figure(f"refresh of {ROWS} changed rows vs bare writes", "1/s", at_least=0.4)
    unchanged = Figure(f"unchanged refresh of {ROWS} rows vs changed", "1/s", at_least=4)
    versions = [await asyncio.to_thread(sheets.delimited, ROWS, version) for version in (0, 1)]
    async with _serving() as server:
        server.content = versions[0]
        source, other = [await _Source.made(platform, server.url) for _ in range(2)]
        await source.refreshed()
        await other.refreshed()
        floor, writes = CopyFloor(platform, source.database_id), _WriteFloor(platform, other)
        await floor.prepare()
        for number in rounds:
            server.content = versions[(number + 1) % 2]
            rate = ROWS / await source.refreshed(updated=ROWS)
            changed.add(rate, ROWS / await floor.seconds())
            bare.add(rate, ROWS / await writes.seconds())
            unchanged.add(ROWS / await source.refreshed(unchanged=ROWS), rate)
    return [changed, bare, unchanged]


async def cancel_times(platform: Platform, client: Client, rounds: Rounds) -> list[Figure]:
    """Seconds from a cancel in each stage until all work of the run has ended."""
    allowed = 2 * HEARTBEAT_SECONDS
    figures = [Figure(f"cancel while rows are in {stage}", "s", at_most=1.0) for stage in STAGES]
    content = await asyncio.to_thread(sheets.delimited, CANCELLED_ROWS)
    async with _serving() as server:
        for _ in rounds:
            for stage, figure in zip(STAGES, figures, strict=True):
                server.content, server.dripping = content, stage == "fetch"
                source = await _Source.made(platform, server.url)
                figure.add(await source.cancelled(client, stage), allowed)
    return figures


@dataclass(frozen=True, slots=True)
class _Source:
    """A data source of CSV that is keyed by its codes."""

    platform: Platform
    path: str
    database_id: str

    @classmethod
    async def made(cls, platform: Platform, url: str) -> "_Source":
        path = f"/v1/workspaces/{platform.connection['workspaceId']}/data-sources"
        body = {
            "label": f"Goods {uuid4().hex[:8]}",
            "kind": "http_csv",
            "config": {"url": url},
            "fields": sheets.FIELDS,
            "keyFields": ["code"],
        }
        made = await platform.post(path, body)
        return cls(platform, f"{path}/{made['id']}", made["targetDatabaseId"])

    async def refreshed(self, updated: int = 0, unchanged: int = 0) -> float:
        """Seconds of a refresh with these numbers of changed and unchanged rows."""
        started = time.perf_counter()
        run_id = (await self.platform.post(f"{self.path}/refresh", {}))["id"]
        while (run := await self._run(run_id))[0] in {"queued", "running"}:
            await asyncio.sleep(0.01)
        taken = time.perf_counter() - started
        status, stats, _ = run
        assert status == "succeeded", run
        assert (stats["rowsUpdated"], stats["rowsUnchanged"]) == (updated, unchanged), stats
        return taken

    async def cancelled(self, client: Client, stage: str) -> float:
        """Seconds from the cancel of a run in this stage until all of it has ended."""
        run_id = (await self.platform.post(f"{self.path}/refresh", {}))["id"]
        while (run := await self._run(run_id))[2].get("stage", "fetch") != stage:
            assert run[0] in {"queued", "running"}, run
            await asyncio.sleep(0.01)
        await asyncio.sleep(BEFORE_CANCEL)
        started = time.perf_counter()
        await self.platform.post(f"{self.path}/runs/{run_id}/cancel", {})
        execution = client.get_workflow_handle(WorkflowKind.DATA_SOURCE_REFRESH.workflow_id(run_id))
        while (await execution.describe()).status is WorkflowExecutionStatus.RUNNING:
            await asyncio.sleep(0.05)
        while await self._busy():
            await asyncio.sleep(0.05)
        return time.perf_counter() - started

    async def _run(self, run_id: str) -> tuple[str, dict[str, int], dict[str, str]]:
        query = "SELECT status, stats, progress FROM data_source_run WHERE id = %s"
        row = await (await self.platform.database.execute(query, [uuid.UUID(run_id)])).fetchone()
        assert row is not None
        return row[0], row[1], row[2]

    async def _busy(self) -> bool:
        """Whether a child of the worker still reads, or PostgreSQL still works on staged rows."""
        worker = psutil.Process(self.platform.worker_pid)
        if any(child.children() for child in worker.children()):
            return True
        query = (
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state <> 'idle'"
            " AND pid <> pg_backend_pid() AND query LIKE '%staged_row%')"
        )
        row = await (await self.platform.database.execute(query)).fetchone()
        return row == (True,)


_PREPARE = """
    CREATE UNLOGGED TABLE IF NOT EXISTS bare_change (
        identity bytea, digest bytea, id uuid, title text, data jsonb, before jsonb, after jsonb
    );
    TRUNCATE bare_change
"""
_CHANGE = """
    INSERT INTO bare_change
    SELECT identity, sha256(digest), id, record.title, record.data || price,
           jsonb_build_object('price', record.data -> 'price'), price
    FROM source_row JOIN record ON record.id = record_id,
         jsonb_build_object('price', (record.data ->> 'price')::numeric + 1) price
    WHERE database_id = %(database)s ORDER BY record.id
"""
_WRITES = (
    """
    UPDATE record SET title = bare_change.title, data = bare_change.data, updated_at = now(),
        creation_principal_type = NULL, creation_run_id = NULL, creation_node_id = NULL
    FROM bare_change WHERE record.id = bare_change.id
    """,
    """
    INSERT INTO record_change (workspace_id, database_id, record_id, kind, principal_type, run_id,
        before, after, at)
    SELECT %(workspace)s, %(database)s, id, 'updated', 'system', %(run)s, before, after, now()
    FROM bare_change
    """,
    """
    UPDATE source_row SET digest = bare_change.digest, run_id = %(run)s
    FROM bare_change WHERE source_row.workspace_id = %(workspace)s
        AND source_row.identity = bare_change.identity AND record_id = id
    """,
)


class _WriteFloor:
    """Statements that only write: changed records, their history, and the rows of their source.

    They compare nothing, hold no record before, and know what changes.
    """

    def __init__(self, platform: Platform, source: _Source) -> None:
        self._database = platform.database
        self._values: dict[str, object] = {
            "workspace": uuid.UUID(platform.connection["workspaceId"]),
            "database": uuid.UUID(source.database_id),
        }

    async def seconds(self) -> float:
        await self._database.execute(_PREPARE)
        await self._database.execute(_CHANGE, self._values)
        await self._database.execute("ANALYZE bare_change")
        started = time.perf_counter()
        async with self._database.transaction():
            for statement in _WRITES:
                await self._database.execute(statement, {**self._values, "run": uuid4()})
        return time.perf_counter() - started


@dataclass(slots=True)
class _Server:
    """Answers every request with its content; dripping, with a piece of it a second."""

    url: str = ""
    content: bytes = b""
    dripping: bool = False
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: {len(self.content)}"
            )
            writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
            for start in range(0, len(self.content), 1 << 16):
                writer.write(self.content[start : start + (1 << 16)])
                await writer.drain()
                await asyncio.sleep(1 if self.dripping else 0)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def _serving() -> AsyncIterator[_Server]:
    made = _Server()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/goods.csv"
    try:
        yield made
    finally:
        server.close()
