"""Writing the request log."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic_core import to_json
from sqlalchemy import Text, bindparam, cast, column, delete, func, insert, select
from sqlalchemy.dialects.postgresql import JSONB

from models.core.base import Id
from models.core.purging import MAX_ROWS
from models.people.request_logs.tables import request_log
from runtime.database import UnitOfWork
from runtime.ids import new_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One call as it is logged; `path` is without its query."""

    workspace_id: Id | None
    principal_type: str
    principal_id: Id
    api_key_id: Id | None
    method: str
    path: str
    status: int
    idempotency_key: str | None
    error: str | None
    duration_ms: float
    created_at: datetime
    id: Id = field(default_factory=new_id)


_ENTRIES = (
    func.jsonb_to_recordset(cast(bindparam("entries", type_=Text), JSONB))
    .table_valued(*(column(one.name, one.type) for one in request_log.columns))
    .render_derived(name="entry", with_types=True)
)
_APPEND = insert(request_log).from_select(list(request_log.columns.keys()), select(_ENTRIES))


async def append_entries(work: UnitOfWork, entries: Sequence[LogEntry]) -> None:
    """Write a batch of rows."""
    if entries:
        await work.execute(_APPEND, {"entries": to_json(entries).decode()})


async def purge_request_logs(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove rows of calls before a moment; how many. To be called until it gives 0."""
    old = (
        select(request_log.c.id)
        .where(request_log.c.created_at < before)
        .order_by(request_log.c.created_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (await work.execute(delete(request_log).where(request_log.c.id.in_(old)))).rowcount
