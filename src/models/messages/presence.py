"""The users who are connected to each workspace at the moment, through any process."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from sqlalchemy import ARRAY, Index, Uuid, bindparam, column, delete, func, insert, or_, select
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, table_of


class Presence(SQLModel, table=True):
    """A user with connections to a workspace in one process, which says so every few seconds.

    The table is unlogged: after a crash the processes fill it again.
    """

    __tablename__ = "realtime_presence"
    __table_args__ = (
        Index("ix_realtime_presence_workspace_id", "workspace_id"),
        {"prefixes": ["UNLOGGED"]},
    )

    process_id: Id = Field(primary_key=True)
    workspace_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    seen_at: datetime = Field(sa_type=Timestamp)


presence = table_of(Presence)

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


async def present_in(work: UnitOfWork, workspace_ids: Collection[Id]) -> Mapping[Id, frozenset[Id]]:
    """The users who are connected to each of these workspaces."""
    rows = await work.rows(
        select(presence.c.workspace_id, presence.c.user_id)
        .distinct()
        .where(
            presence.c.workspace_id.in_(workspace_ids),
            presence.c.seen_at > func.clock_timestamp() - FORGOTTEN_AFTER,
        ),
        of=Presence,
    )
    found: defaultdict[Id, set[Id]] = defaultdict(set)
    for row in rows:
        found[row.workspace_id].add(row.user_id)
    return {id_: frozenset(found[id_]) for id_ in workspace_ids}
