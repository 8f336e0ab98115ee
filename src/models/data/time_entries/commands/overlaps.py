"""A person's time is counted once: what is written down may not overlap what there is."""

from sqlalchemy import and_, func, literal, not_, select

from models.core.base import Id
from models.data.time_entries.commands.locks import lock_times
from models.data.time_entries.queries.spans import spans_of, worked
from models.data.time_entries.rules.kinds import EntryStatus
from models.data.time_entries.rules.times import Times
from models.data.time_entries.tables import time_entry
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.timestamps import wire_timestamp

_entry = time_entry.c


async def refuse_overlap(
    work: UnitOfWork, workspace_id: Id, user_id: Id, entry_id: Id, times: Times
) -> None:
    """Raise `ConflictError` when other entries of a user count a part of this time.

    The one that runs is none of them for an entry that begins after it and runs on: it makes room.
    Until the transaction ends nobody else writes times of this user down.
    """
    await lock_times(work, workspace_id, user_id)
    end = times.stop(work.now)
    now = literal(work.now, _entry.started_at.type)
    makes_room = and_(_entry.status == EntryStatus.ACTIVE, _entry.started_at <= times.started_at)
    met = await work.first(
        select(_entry.started_at, _entry.target_title_snapshot)
        .where(
            _entry.workspace_id == workspace_id,
            _entry.user_id == user_id,
            _entry.id != entry_id,
            _entry.status != EntryStatus.DISCARDED,
            _entry.deleted_at.is_(None),
            _entry.started_at < end,
            func.coalesce(_entry.ended_at, now) > times.started_at,
            worked(work.now).op("&&")(spans_of(times, work.now)),
            *([] if times.ended_at else [not_(makes_room)]),
        )
        .order_by(_entry.started_at)
        .limit(1)
    )
    if met is not None:
        began = wire_timestamp(met.started_at)
        raise ConflictError(f"This time overlaps the entry that began at {began}.")
