"""The request log's writer: bounded, batched, and empty when the process ends."""

import asyncio
import uuid

from sqlalchemy import func, select

from api.kernel.services import RequestLogWriter
from models.people.request_logs import LogEntry, request_log
from runtime.clock import utc_now
from runtime.database import Database
from tests.support.watched import WatchedDatabase


def _entry(workspace_id: uuid.UUID, **changes: object) -> LogEntry:
    values = {
        "workspace_id": workspace_id,
        "principal_type": "api_key",
        "principal_id": uuid.uuid4(),
        "api_key_id": None,
        "method": "GET",
        "path": "/v1/me",
        "status": 200,
        "idempotency_key": None,
        "error": None,
        "duration_ms": 1.5,
        "created_at": utc_now(),
        **changes,
    }
    return LogEntry(**values)  # type: ignore[arg-type]


async def _written(database: Database, workspace_id: uuid.UUID) -> int:
    query = select(func.count()).where(request_log.c.workspace_id == workspace_id)
    async with database.transaction() as work:
        count: int = await work.scalar(query)
    return count


async def test_queued_entries_are_written_at_the_end(database: WatchedDatabase) -> None:
    workspace_id = uuid.uuid4()
    writer = RequestLogWriter(database)
    writer.start()
    for _ in range(2500):
        writer.record(_entry(workspace_id))
    await writer.stop()
    assert await _written(database, workspace_id) == 2500
    assert writer.dropped == 0


async def test_entries_that_do_not_fit_are_counted(database: WatchedDatabase) -> None:
    workspace_id = uuid.uuid4()
    writer = RequestLogWriter(database, capacity=10)
    for _ in range(25):
        writer.record(_entry(workspace_id))
    await writer.flush()
    assert writer.dropped == 15
    assert await _written(database, workspace_id) == 10


async def test_entries_that_arrive_during_a_batch_wait_for_the_next(
    database: WatchedDatabase,
) -> None:
    workspace_id = uuid.uuid4()
    writer = RequestLogWriter(database)
    writer.record(_entry(workspace_id))
    under_way = asyncio.create_task(writer.flush())
    await asyncio.sleep(0)
    writer.record(_entry(workspace_id))
    await under_way
    assert await _written(database, workspace_id) == 1
    await writer.flush()
    assert await _written(database, workspace_id) == 2


async def test_a_row_the_database_refuses_does_not_stop_the_log(
    database: WatchedDatabase,
) -> None:
    workspace_id = uuid.uuid4()
    writer = RequestLogWriter(database)
    writer.record(_entry(workspace_id, path="\x00"))
    await writer.flush()
    writer.record(_entry(workspace_id))
    await writer.flush()
    assert writer.dropped == 1
    assert await _written(database, workspace_id) == 1


async def test_without_a_database_the_log_waits(database: WatchedDatabase) -> None:
    workspace_id = uuid.uuid4()
    away = Database("postgresql://127.0.0.1:1/none")
    writer = RequestLogWriter(away)
    for _ in range(3):
        writer.record(_entry(workspace_id))
    await writer.flush()
    writer._database = database
    await writer.flush()
    await away.close()
    assert writer.dropped == 0
    assert await _written(database, workspace_id) == 3
