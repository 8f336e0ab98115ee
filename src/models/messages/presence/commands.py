"""Saying who is connected to a process."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import ARRAY, Uuid, bindparam, column, delete, func, insert, or_, select

from models.core.base import Id
from models.messages.presence.tables import presence
from runtime.database import UnitOfWork

REPORT_SECONDS = 20.0
FORGOTTEN_AFTER = timedelta(seconds=60)
"""The time since its last report after which a process has died, or is cut off."""

_places = bindparam("workspace_ids", type_=ARRAY(Uuid))
_users = bindparam("user_ids", type_=ARRAY(Uuid))
_rows = (
    func.unnest(_places, _users)
    .table_valued(column("workspace_id", Uuid), column("user_id", Uuid))
    .render_derived(name="given")
)


async def report_presence(
    work: UnitOfWork, process_id: Id, present: Collection[tuple[Id, Id]]
) -> None:
    """Replace what this process reported by these pairs of workspace and user."""
    forgotten = func.clock_timestamp() - FORGOTTEN_AFTER
    mine = presence.c.process_id == process_id
    await work.execute(delete(presence).where(or_(mine, presence.c.seen_at < forgotten)))
    if not present:
        return
    workspace_ids, user_ids = zip(*sorted(present), strict=True)
    columns = ["process_id", "workspace_id", "user_id", "seen_at"]
    source = select(
        bindparam("process_id", type_=Uuid),
        _rows.c.workspace_id,
        _rows.c.user_id,
        func.clock_timestamp(),
    )
    parameters = {
        "process_id": process_id,
        "workspace_ids": list(workspace_ids),
        "user_ids": list(user_ids),
    }
    await work.execute(insert(presence).from_select(columns, source), parameters)
