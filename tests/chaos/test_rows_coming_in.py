"""Workers that die while rows are imported: all rows arrive, once."""

import asyncio
import json
import operator
import signal
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from models.core.base import Id
from models.sources.data_source_runs.acceptance import accept_refresh
from models.sources.data_source_runs.imports import accept_import
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.queries import CreateDataSource
from runtime.clock import utc_now
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.chaos.rows import ROWS, judge
from tests.support.engine import Engine
from tests.support.patience import eventually, found_when

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40), pytest.mark.long]

PAGES = 3
PAGE_ROWS = ROWS // PAGES
POINTS = [
    FaultPoint.AFTER_PAGE_BEFORE_PROGRESS,
    FaultPoint.AFTER_BATCH_OF_ROWS,
    FaultPoint.AFTER_ROWS_BEFORE_COMMIT,
    FaultPoint.AFTER_TERMINAL_WRITE,
]
"""The points on the way of a run, in their order."""


@pytest_asyncio.fixture
async def pages() -> AsyncIterator[str]:
    """The URL of a server that gives the rows of the page it is asked for, and none after them."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode()
        page = int(line.split()[1].partition("page=")[2])
        first = (page - 1) * PAGE_ROWS
        numbers = range(first, first + PAGE_ROWS if page <= PAGES else first)
        body = json.dumps([{"code": f"c{n}", "price": n} for n in numbers]).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        writer.write(f"{head}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_workers_that_die_at_every_stage_lose_and_double_no_row(
    idle: Engine, workers: Workers, pages: str, url: str, tmp_path: Path
) -> None:
    armed = {"WORKSPACE_FAULT": ",".join(POINTS), "WORKSPACE_FAULT_MARKS": str(tmp_path)}
    armed["WORKSPACE_OBJECT_STORE"] = (tmp_path / "objects").as_uri()
    # Each point kills once, so that one worker is left.
    started = [await workers.start(**armed) for _ in range(len(POINTS) + 1)]
    for worker in started:
        # One that began later would suspect the run, and the third death would be the last.
        await worker.ready()
    runs = [await _refresh(idle, pages) for _ in POINTS]
    for run_id in runs:
        await _ended(url, run_id)
    codes = Counter([worker.process.exit_code for worker in started])
    assert codes == {-signal.SIGKILL: len(POINTS), None: 1}
    for run_id in runs:
        await judge(url, run_id)

    store = ObjectStore(armed["WORKSPACE_OBJECT_STORE"])

    async def stored_pages() -> list[str]:
        # A worker that died while it wrote leaves a draft, which no listing has.
        return [
            key
            async for keys in store.older_than("", utc_now() + timedelta(days=1))
            for key in keys
        ]

    # The worker that ended the last run may have died before it could.
    await found_when(stored_pages, operator.not_, "the removal of the pages")


async def test_workers_that_die_while_rows_are_copied_create_one_database(
    idle: Engine, workers: Workers, url: str, tmp_path: Path
) -> None:
    points = [FaultPoint.AFTER_ROWS_BEFORE_COMMIT, FaultPoint.AFTER_TERMINAL_WRITE]
    armed = {"WORKSPACE_FAULT": ",".join(points), "WORKSPACE_FAULT_MARKS": str(tmp_path)}
    started = [await workers.start(**armed) for _ in range(len(points) + 1)]
    for worker in started:
        await worker.ready()
    text = "code,price\n" + "".join(f"c{n},{n}\n" for n in range(ROWS))
    body = {"label": "Copied", "kind": "inline", "format": "csv", "text": text, "fields": []}
    run_ids: list[Id] = []
    for _ in points:
        async with idle.database.transaction() as work:
            asked = ImportSpreadsheet.model_validate(body)
            run_ids.append(await accept_import(work, idle.actor, new_id(), asked))
    for run_id in run_ids:
        await _ended(url, run_id)
        await judge(url, run_id)
    codes = Counter([worker.process.exit_code for worker in started])
    assert codes == {-signal.SIGKILL: len(points), None: 1}
    query = "SELECT count(*) FROM database WHERE label = 'Copied' AND workspace_id = %s"
    assert await fetch(url, query, idle.actor.workspace_id) == [(len(run_ids),)]


async def _refresh(engine: Engine, address: str) -> Id:
    """A refresh that is accepted."""
    body = {
        "label": "Pages",
        "kind": "http_json",
        "config": {"url": address, "pagination": {"type": "page", "param": "page"}},
        "fields": [
            {"sourcePath": "code", "fieldKey": "title", "label": "Code", "kind": "text"},
            {"sourcePath": "price", "fieldKey": "price", "label": "Price", "kind": "number"},
        ],
        "keyFields": ["title"],
    }
    async with engine.database.transaction() as work:
        source = await create_data_source(work, engine.actor, CreateDataSource.model_validate(body))
    run_id: Id = new_id()
    async with engine.database.transaction() as work:
        await accept_refresh(work, engine.actor, source.id, run_id)
    return run_id


async def _ended(url: str, run_id: Any) -> None:
    async def is_closed() -> bool:
        query = "SELECT status FROM data_source_run WHERE id = %s"
        try:
            [(status,)] = await fetch(url, query, run_id)
        except psycopg.OperationalError:
            return False  # it is being killed
        return status not in {"queued", "running"}

    await eventually(is_closed, f"the end of run {run_id}")
