"""The events of records that were written in bulk, told from the history of this transaction.

A bulk write leaves its rows in the database, so what an event holds is read back: a record as it is
now, and as it was before. Of computed values only the present ones are known.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import TITLE_KEY
from models.data.record_changes.rows import ChangeRow
from models.data.record_changes.rules import ChangeKind, RecordedChange
from models.data.records.commands.rows import read_records
from models.data.records.events import CHUNK, has_subscriber, keep_changes
from models.data.records.queries.creations import CHANGES
from models.data.records.rules.write.writes import Planned, StoredRecord
from runtime.database import UnitOfWork
from runtime.ids import least_id


async def emit_written(work: UnitOfWork, actor: Actor, schema: Schema) -> None:
    """Keep an event for each change that the actor made in this transaction, if any is heard.

    Never more than `CHUNK` changes are in memory.
    """
    if not await has_subscriber(work, actor, schema):
        return
    # Ids of changes come from the database's clock.
    last = least_id(await work.scalar(select(func.transaction_timestamp())))
    while changes := await _written(work, actor, schema, last):
        last = changes[-1].id
        ids = [change.record_id for change in changes]
        rows = await read_records(work, schema, ids)
        past = await _last_changes(work, schema, ids, changes[0].id)
        planned = [
            _planned(change, rows[change.record_id], past.get(change.record_id))
            for change in changes
        ]
        await keep_changes(work, actor, schema, planned, rows)


async def _written(
    work: UnitOfWork, actor: Actor, schema: Schema, after: Id
) -> Sequence[ChangeRow]:
    statement = select(CHANGES).where(
        CHANGES.c.id > after,
        CHANGES.c.workspace_id == schema.workspace_id,
        CHANGES.c.database_id == schema.database_id,
        CHANGES.c.actor_user_id == actor.user_id,
        CHANGES.c.run_id.is_not_distinct_from(actor.principal.run_id),
        CHANGES.c.at == work.now,
    )
    return await work.rows(statement.order_by(CHANGES.c.id).limit(CHUNK), of=ChangeRow)


async def _last_changes(
    work: UnitOfWork, schema: Schema, ids: Collection[Id], before: Id
) -> Mapping[Id, ChangeRow]:
    statement = (
        select(CHANGES.c.record_id, CHANGES.c.kind, CHANGES.c.actor_user_id, CHANGES.c.at)
        .where(
            CHANGES.c.workspace_id == schema.workspace_id,
            CHANGES.c.record_id.in_(ids),
            CHANGES.c.id < before,
        )
        .ext(distinct_on(CHANGES.c.record_id))
        .order_by(CHANGES.c.record_id, CHANGES.c.id.desc())
    )
    return {row.record_id: row for row in await work.rows(statement, of=ChangeRow)}


def _planned(change: ChangeRow, now: StoredRecord, past: ChangeRow | None) -> Planned:
    """A change of the history as the write that made it was planned."""
    kind = ChangeKind(change.kind)
    omitted = change.omitted_keys or ()
    history = RecordedChange(change.record_id, kind, change.before, change.after, omitted)
    before = None if kind is ChangeKind.CREATED else _before(change, now, past)
    return Planned(before, now, kind, history=history)


def _before(change: ChangeRow, now: StoredRecord, past: ChangeRow | None) -> StoredRecord:
    old, new = change.before or {}, change.after or {}
    stays = {key: value for key, value in now.data.items() if key not in new}
    deleted = past is not None and past.kind == ChangeKind.DELETED
    archived = {ChangeKind.ARCHIVED.value: False, ChangeKind.RESTORED.value: not deleted}
    return now._replace(
        title=old.get(TITLE_KEY, now.title),
        data={**stays, **{key: value for key, value in old.items() if key != TITLE_KEY}},
        archived=archived.get(change.kind, now.archived),
        deleted_at=past.at if past is not None and deleted else None,
        updated_by_user_id=now.created_by_user_id if past is None else past.actor_user_id,
        updated_at=now.created_at if past is None else past.at,
    )
