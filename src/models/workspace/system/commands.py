"""Messages of worker processes about themselves."""

from collections.abc import Sequence

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.workspace.system.rules import SHOWN_FOR
from models.workspace.system.tables import worker_process
from runtime.database import UnitOfWork
from runtime.families import Queue


async def beat(
    work: UnitOfWork, worker_id: Id, host: str, pid: int, queues: Sequence[Queue]
) -> None:
    """Say that a worker process is there; whoever is long gone is forgotten."""
    statement = upsert(worker_process).values(
        id=worker_id,
        host=host,
        pid=pid,
        queues=[queue.value for queue in queues],
        started_at=work.now,
        seen_at=work.now,
    )
    await work.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_={"seen_at": work.now})
    )
    gone = worker_process.c.seen_at < work.now - SHOWN_FOR
    await work.execute(delete(worker_process).where(gone))


async def leave(work: UnitOfWork, worker_id: Id) -> None:
    """Say that a worker process ends."""
    await work.execute(delete(worker_process).where(worker_process.c.id == worker_id))
