"""Messages of worker processes about themselves, and the upkeep of the counts of ended work."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, BindParameter, bindparam, cast, delete, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.workspace.system.rules import SHOWN_FOR
from models.workspace.system.tables import ended_work, worker_process
from runtime.database import UnitOfWork
from runtime.families import Queue
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp
from runtime.work import Work

_MERGED_AT_ONCE = 10_000

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


async def merge_ended_work(work: UnitOfWork) -> int:
    """Make one row of the ends of each kind and status; how many rows there were too many.

    Repeat until 0. What is written meanwhile is left to the next call.
    """
    key = ended_work.c.kind, ended_work.c.status
    next_ones = select(ended_work.c.id).limit(_MERGED_AT_ONCE).with_for_update(skip_locked=True)
    parts = (
        delete(ended_work)
        .where(ended_work.c.id.in_(next_ones))
        .returning(*key, ended_work.c.number)
        .cte("part")
    )
    merged_key = parts.c.kind, parts.c.status
    total = cast(func.sum(parts.c.number), BigInteger)
    merged = (
        insert(ended_work)
        .from_select(["kind", "status", "number"], select(*merged_key, total).group_by(*merged_key))
        .returning(ended_work.c.id)
        .cte("merged")
    )
    before, after = (
        select(func.count()).select_from(one).scalar_subquery() for one in (parts, merged)
    )
    return int(await work.scalar(select(before - after).add_cte(parts, merged)))
