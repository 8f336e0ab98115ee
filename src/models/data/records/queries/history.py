"""The history of a record as one actor sees it."""

from collections.abc import Collection

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.data.fields.rules.fields import FieldSpecs
from models.data.record_changes.queries import list_changes
from models.data.record_changes.shapes import RecordChangeShape, RecordHistory
from models.data.records.queries.creations import CHANGES
from models.data.records.queries.records import load_schema_of
from models.data.records.queries.visibility import open_records
from models.data.records.tables import record
from runtime.database import UnitOfWork


async def list_history(
    work: UnitOfWork, actor: Actor, record_id: Id, page: PageRequest
) -> RecordHistory:
    """The changes of a record, newest first, in the fields its database has now.

    Records out of the actor's sight are left out of what relation fields held. Raises
    `NotFoundError`.
    """
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    history = await list_changes(work, CHANGES, actor.workspace_id, record_id, page)
    target_ids = {
        Id(target)
        for change in history.changes
        for values in (change.before, change.after)
        for key, targets in (values or {}).items()
        if key in schema.fields and schema.fields[key].relation
        for target in targets
    }
    seen = await _seen(work, actor, target_ids)
    changes = [_shown(change, schema.fields, seen) for change in history.changes]
    return RecordHistory(changes=changes, cursor=history.cursor)


async def _seen(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> set[str]:
    """The ids of the given records, in the trash or not, whose database the actor sees."""
    if not ids:
        return set()
    rows = await work.rows(open_records(actor, ids, record.c.id))
    return {str(row.id) for row in rows}


def _shown(change: RecordChangeShape, fields: FieldSpecs, seen: set[str]) -> RecordChangeShape:
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
