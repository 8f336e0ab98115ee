"""The history of a record, and the changes that an undo made, as far as the actor sees them."""

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.data.fields.rows import DATABASE, fields_of_each, open_databases
from models.data.fields.rules.fields import FieldSpecs
from models.data.record_changes import history as record_change_history
from models.data.records.details import open_records
from models.data.records.queries import load_schema_of
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.data.records.tables import record
from runtime.database import UnitOfWork


async def list_history(
    work: UnitOfWork, actor: Actor, record_id: Id, page: PageRequest
) -> record_change_history.RecordHistory:
    """The changes of a record, newest first, in the fields its database has now.

    Records out of the actor's sight are left out of what relation fields held. Raises
    `NotFoundError`.
    """
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    history = await record_change_history.list_changes(
        work, CHANGES_WITH_CREATIONS, actor.workspace_id, record_id, page
    )
    target_ids = {one for each in history.changes for one in _targets(each, schema.fields)}
    seen = await _seen(work, actor, target_ids)
    changes = [_shown(change, schema.fields, seen) for change in history.changes]
    return record_change_history.RecordHistory(changes=changes, cursor=history.cursor)


class UndoneChange(NamedTuple):
    """A change that an undo made, and the record it is of."""

    record_id: Id
    database_id: Id
    title: str
    change: record_change_history.RecordChangeShape


async def undone_changes(
    work: UnitOfWork, actor: Actor, undo_id: Id, most: int
) -> list[UndoneChange]:
    """The first changes that an undo made, as far as the actor sees their databases."""
    rows = await work.rows(
        open_databases(actor, *record_change_history.CHANGE, record.c.title)
        .join(record, record.c.database_id == DATABASE.id)
        .join(
            record_change_history.CHANGE.id.table,
            record_change_history.CHANGE.record_id == record.c.id,
        )
        .where(
            record_change_history.CHANGE.workspace_id == actor.workspace_id,
            record_change_history.CHANGE.undo_id == undo_id,
        )
        .order_by(record_change_history.CHANGE.id)
        .limit(most)
    )
    fields = await fields_of_each(work, actor.workspace_id, {row.database_id for row in rows})
    changes = [(row, record_change_history.change_shape(row)) for row in rows]
    targets = (_targets(change, fields[row.database_id]) for row, change in changes)
    visible_ids = await _seen(work, actor, set().union(*targets))
    return [
        UndoneChange(
            row.record_id,
            row.database_id,
            row.title,
            _shown(change, fields[row.database_id], visible_ids),
        )
        for row, change in changes
    ]


async def number_of_undone_records(work: UnitOfWork, workspace_id: Id, undo_id: Id) -> int:
    """The number of records that an undo changed."""
    count: int = await work.scalar(
        sa.select(sa.func.count(record_change_history.CHANGE.record_id.distinct())).where(
            record_change_history.CHANGE.workspace_id == workspace_id,
            record_change_history.CHANGE.undo_id == undo_id,
        )
    )
    return count


def _targets(change: record_change_history.RecordChangeShape, fields: FieldSpecs) -> set[Id]:
    """The ids of the records that relation fields held before and after a change."""
    return {
        Id(target)
        for values in (change.before, change.after)
        for key, targets in (values or {}).items()
        if key in fields and fields[key].relation
        for target in targets
    }


async def _seen(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> set[str]:
    """The ids of the given records, in the trash or not, whose database the actor sees."""
    if not ids:
        return set()
    rows = await work.rows(open_records(actor, ids, record.c.id))
    return {str(row.id) for row in rows}


def _shown(
    change: record_change_history.RecordChangeShape, fields: FieldSpecs, seen: set[str]
) -> record_change_history.RecordChangeShape:
    return change.model_copy(
        update={
            "before": _values(change.before, fields, seen),
            "after": _values(change.after, fields, seen),
            "changed_keys": [key for key in change.changed_keys if key in fields],
            "omitted_keys": [key for key in change.omitted_keys if key in fields],
        }
    )


def _values(values: JsonObject | None, fields: FieldSpecs, seen: set[str]) -> JsonObject | None:
    if values is None:
        return None
    return {
        key: [each for each in value if each in seen] if fields[key].relation else value
        for key, value in values.items()
        if key in fields
    }
