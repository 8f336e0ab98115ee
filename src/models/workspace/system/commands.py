"""Messages of worker processes about themselves."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.workspace.system.rules import SHOWN_FOR
from models.workspace.system.tables import worker_process
from runtime.database import UnitOfWork
from runtime.families import Queue
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp
from runtime.work import Work

_process = worker_process.c
_OWN: dict[str, BindParameter[Any]] = {
    name: bindparam(name, type_=_process[name].type) for name in ("id", "host", "pid", "queues")
}
_NOW = bindparam("now", type_=Timestamp)
_GONE = delete(worker_process).where(_process.seen_at < _NOW - SHOWN_FOR, _process.id != _OWN["id"])
_BEAT = PreparedStatement(
    upsert(worker_process)
    .values(**_OWN, started_at=_NOW, seen_at=_NOW)
    .on_conflict_do_update(index_elements=["id"], set_={"seen_at": _NOW})
    .add_cte(_GONE.cte("gone"))
)


async def beat(work: Work, worker_id: Id, host: str, pid: int, queues: Sequence[Queue]) -> None:
    """Say that a worker process is there; whoever is long gone is forgotten."""
    values = {"id": worker_id, "host": host, "pid": pid, "queues": [*queues], "now": work.now}
    await _BEAT.execute(work, values)


async def leave(work: UnitOfWork, worker_id: Id) -> None:
    """Say that a worker process ends."""
    await work.execute(delete(worker_process).where(worker_process.c.id == worker_id))
