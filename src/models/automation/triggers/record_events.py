"""Changes of records become events, in the transaction of whoever writes.

Writers ask once whether any automation listens to the database. If one does, every change is kept
as it is: what later happens to the record changes nothing of what triggers are told.
"""

from collections.abc import Mapping, Sequence

from pydantic_core import to_json
from sqlalchemy import (
    ARRAY,
    Text,
    Uuid,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automation_runs.tables import automation_run
from models.automation.triggers.rules.changes import bounded, differing
from models.automation.triggers.rules.kinds import RECORD_TRIGGERS
from models.core.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.data.databases.rules.fields import Schema
from models.data.record_changes.rules import ChangeKind
from models.data.records.details import record_details
from models.data.records.rules.write.writes import Planned, StoredRecord
from models.data.records.shapes import RecordDetail
from models.messages.events.rules import EventKind
from models.messages.events.tables import automation_subscription, trigger_event
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

CHUNK = 100
"""Changes that are in memory at once as triggers see them."""

_WORKSPACE = bindparam("workspace_id", type_=Uuid)
_listens = automation_subscription.c
_KINDS = literal([kind.value for kind in RECORD_TRIGGERS], ARRAY(Text))

_LISTENERS = PreparedStatement(
    select(func.bool_or(_listens.include_system).label("include_system")).where(
        _listens.workspace_id == _WORKSPACE,
        _listens.kind == func.any(_KINDS),
        _listens.subject_id == bindparam("database_id", type_=Uuid),
    )
)
"""Whether any automation hears changes of a database's records, and whether one hears all."""

_RUN_ID = bindparam("run_id", type_=Uuid)
_CHAIN = (
    select(func.array_append(automation_run.c.chain, automation_run.c.id))
    .where(automation_run.c.workspace_id == _WORKSPACE, automation_run.c.id == _RUN_ID)
    .scalar_subquery()
)
_ROWS = (
    func.jsonb_to_recordset(cast(bindparam("rows", type_=Text), JSONB))
    .table_valued(column("event_id", Uuid), column("payload", JSONB))
    .render_derived(name="entry", with_types=True)
)
_NOW = bindparam("now", type_=Timestamp)
_EVENT = {
    "event_id": _ROWS.c.event_id,
    "workspace_id": _WORKSPACE,
    "kind": literal(EventKind.RECORD_CHANGED.value, Text),
    "subject_id": bindparam("database_id", type_=Uuid),
    "payload": _ROWS.c.payload,
    "chain": func.coalesce(_CHAIN, literal_column("'{}'::uuid[]")),
    "attempts": literal_column("0"),
    "created_at": _NOW,
    "due_at": _NOW,
}
# Event ids were made in the order of the writes, and so they are numbered.
_EMIT = PreparedStatement(
    insert(trigger_event).from_select(
        list(_EVENT), select(*_EVENT.values()).order_by(_ROWS.c.event_id)
    )
)


async def emit_changes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    planned: Sequence[Planned],
    rows: Mapping[Id, StoredRecord],
) -> None:
    """Keep an event for every change among these writes, if any automation hears it.

    `rows` are the records as they are now.
    """
    changed = [one for one in planned if one.kind is not None]
    if not changed or not await _heard(work, actor, schema):
        return
    for first in range(0, len(changed), CHUNK):
        some = changed[first : first + CHUNK]
        changes = await _changes(work, actor, schema, some, rows)
        entries = [{"event_id": new_id(), "payload": bounded(change)} for change in changes]
        await _emit(work, actor, schema, entries)
    work.notify_workers = True


async def _emit(
    work: UnitOfWork, actor: Actor, schema: Schema, entries: Sequence[JsonObject]
) -> None:
    parameters = {
        "workspace_id": schema.workspace_id,
        "database_id": schema.database_id,
        "run_id": actor.principal.run_id,
        "now": work.now,
        "rows": to_json(entries).decode(),
    }
    await _EMIT.execute(work, parameters)


async def _changes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    changed: Sequence[Planned],
    rows: Mapping[Id, StoredRecord],
) -> list[JsonObject]:
    seen_by = any_automation(schema.workspace_id)
    now = await record_details(work, seen_by, schema, [rows[one.after.id] for one in changed])
    held = [one.before for one in changed if one.before is not None]
    past = {each.id: each for each in await record_details(work, seen_by, schema, held)}
    return [
        _change(actor, schema, one, detail, past.get(detail.id))
        for one, detail in zip(changed, now, strict=True)
    ]


async def _heard(work: UnitOfWork, actor: Actor, schema: Schema) -> bool:
    parameters = {"workspace_id": schema.workspace_id, "database_id": schema.database_id}
    (found,) = await _LISTENERS.rows(work, parameters)
    if found.include_system is None:
        return False
    return bool(found.include_system) or not _is_system(actor)


def _is_system(actor: Actor) -> bool:
    """Whether the platform writes by itself: neither for a person nor for a run, or in bulk."""
    alone = actor.person is None and actor.principal.run_id is None
    return alone or actor.principal.bulk


def any_automation(workspace_id: Id) -> Actor:
    """Who sees what every automation sees, and no more."""
    principal = Principal(type=PrincipalType.SYSTEM, id=workspace_id, user_id=workspace_id)
    scopes = ROLE_SCOPES[Role.EDITOR]
    return Actor(principal=principal, workspace_id=workspace_id, role=Role.EDITOR, scopes=scopes)


def _change(
    actor: Actor, schema: Schema, one: Planned, now: RecordDetail, past: RecordDetail | None
) -> JsonObject:
    record = _shown(now)
    before = None
    if past is not None and _was_there(one):
        before = _as_it_was(schema, one, past)
    computed = [key for key, spec in schema.fields.items() if spec.computed]
    keys = set(one.changed_keys)
    if before is not None:
        keys.update(differing(before, record, computed))
    return {
        "record": record,
        "before": before,
        "changedKeys": sorted(keys),
        "actor": {
            "type": actor.principal.type.value,
            "userId": None if actor.person is None else str(actor.person),
            "runId": None if actor.principal.run_id is None else str(actor.principal.run_id),
        },
        "gone": one.kind is ChangeKind.DELETED,
        "system": _is_system(actor),
    }


def _was_there(one: Planned) -> bool:
    return one.before is not None and one.before.deleted_at is None


def _as_it_was(schema: Schema, one: Planned, past: RecordDetail) -> JsonObject:
    """The record before; its links are read after, but for those that the write changed."""
    assert one.history is not None, "what changes nothing is no change"
    shown = _shown(past)
    del shown["related"]
    old = one.history.before or {}
    for key in one.changed_keys:
        if key in schema.fields and schema.fields[key].relation:
            shown["relations"][key] = old.get(key, [])
    return shown


def _shown(detail: RecordDetail) -> JsonObject:
    shown: JsonObject = detail.model_dump(mode="json", by_alias=True)
    return shown
