"""Events and notifications of changed records, one write or many.

Events are kept in the transaction of whoever writes. Writers ask once whether any automation
subscribes to the database. If one does, every change is kept as it is: what later happens to the
record changes nothing of the event.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from models.core.access.rules import ROLE_SCOPES, Actor, Principal, Role
from models.core.base import Id, JsonObject
from models.data.fields.rows import item_of_database
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, Schema
from models.data.record_changes.history import ChangeRow
from models.data.record_changes.rules import ChangeKind, RecordedChange
from models.data.records.details import record_details
from models.data.records.rows import CHANGES_WITH_CREATIONS, read_records
from models.data.records.rules.writes import Planned, StoredRecord, bounded_change, differing_fields
from models.data.records.shapes import RecordDetail
from models.messages.events.store import emit_record_changes, has_record_subscriber
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify_each
from models.people.users import display_name
from runtime.database import UnitOfWork
from runtime.ids import least_id, parse_id

CHUNK = 100
"""Changes that are in memory at once as events."""


async def emit_changes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    plans: Sequence[Planned],
    rows: Mapping[Id, StoredRecord],
) -> None:
    """Keep an event for every change among these writes, if any automation subscribes to it.

    `rows` are the records as they are now.
    """
    changes = [plan for plan in plans if plan.kind is not None]
    if not changes or not await has_subscriber(work, actor, schema):
        return
    for first in range(0, len(changes), CHUNK):
        await keep_changes(work, actor, schema, changes[first : first + CHUNK], rows)


async def has_subscriber(work: UnitOfWork, actor: Actor, schema: Schema) -> bool:
    """True when an automation subscribes to what this actor changes in the database."""
    here = schema.workspace_id, schema.database_id
    return await has_record_subscriber(work, *here, system=_is_system(actor))


async def keep_changes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    changes: Sequence[Planned],
    rows: Mapping[Id, StoredRecord],
) -> None:
    """Keep an event for each of at most `CHUNK` changes; `rows` as in `emit_changes`."""
    events = [
        bounded_change(change) for change in await _changes(work, actor, schema, changes, rows)
    ]
    here = schema.workspace_id, schema.database_id
    await emit_record_changes(work, *here, events, actor.principal.run_chain)


async def _changes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    changes: Sequence[Planned],
    rows: Mapping[Id, StoredRecord],
) -> list[JsonObject]:
    seen_by = any_automation(schema.workspace_id)
    after = [rows[plan.after.id] for plan in changes]
    before = [plan.before for plan in changes if plan.before is not None]
    # One statement reads the links of both.
    details = await record_details(work, seen_by, schema, [*after, *before])
    now, past = details[: len(after)], {each.id: each for each in details[len(after) :]}
    return [
        _change(actor, schema, plan, detail, past.get(detail.id))
        for plan, detail in zip(changes, now, strict=True)
    ]


def _is_system(actor: Actor) -> bool:
    """True when the platform writes by itself: neither for a person nor for a run, or in bulk."""
    alone = actor.person is None and actor.principal.run_id is None
    return alone or actor.principal.bulk


def any_automation(workspace_id: Id) -> Actor:
    """The actor who sees what every automation sees, and no more."""
    principal = Principal.of_platform(workspace_id)
    scopes = ROLE_SCOPES[Role.EDITOR]
    return Actor(principal=principal, workspace_id=workspace_id, role=Role.EDITOR, scopes=scopes)


def _change(
    actor: Actor, schema: Schema, plan: Planned, now: RecordDetail, past: RecordDetail | None
) -> JsonObject:
    record = now.to_json()
    before = None
    if past is not None and _was_there(plan):
        before = _as_it_was(schema, plan, past)
    computed = [key for key, spec in schema.fields.items() if spec.computed]
    keys = set(plan.changed_keys)
    if before is not None:
        keys.update(differing_fields(before, record, computed))
    return {
        "record": record,
        "before": before,
        "changedKeys": sorted(keys),
        "actor": {
            "type": actor.principal.type.value,
            "userId": None if actor.person is None else str(actor.person),
            "runId": None if actor.principal.run_id is None else str(actor.principal.run_id),
        },
        "gone": plan.kind is ChangeKind.DELETED,
        "system": _is_system(actor),
    }


def _was_there(plan: Planned) -> bool:
    return plan.before is not None and plan.before.deleted_at is None


def _as_it_was(schema: Schema, plan: Planned, past: RecordDetail) -> JsonObject:
    """The record before; its links are read after, but for the ones that the write changed."""
    assert plan.history is not None, "a planned change has a history"
    snapshot = past.to_json()
    del snapshot["related"]
    old = plan.history.before or {}
    for key in plan.changed_keys:
        if key in schema.fields and schema.fields[key].relation:
            snapshot["relations"][key] = old.get(key, [])
    return snapshot


async def emit_written(work: UnitOfWork, actor: Actor, schema: Schema) -> None:
    """Keep an event for each change that the actor made in this transaction, if any is heard.

    Never more than `CHUNK` changes are in memory.

    A bulk write leaves its rows in the database, so what an event holds is read back from the
    history: a record as it is now, and as it was before. Of computed values only the present ones
    are known.
    """
    if not await has_subscriber(work, actor, schema):
        return
    # Ids of changes come from the database's clock.
    last = least_id(await work.scalar(sa.select(sa.func.transaction_timestamp())))
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
    statement = sa.select(CHANGES_WITH_CREATIONS).where(
        CHANGES_WITH_CREATIONS.c.id > after,
        CHANGES_WITH_CREATIONS.c.workspace_id == schema.workspace_id,
        CHANGES_WITH_CREATIONS.c.database_id == schema.database_id,
        CHANGES_WITH_CREATIONS.c.actor_user_id == actor.user_id,
        CHANGES_WITH_CREATIONS.c.run_id.is_not_distinct_from(actor.principal.run_id),
        CHANGES_WITH_CREATIONS.c.at == work.now,
    )
    return await work.rows(
        statement.order_by(CHANGES_WITH_CREATIONS.c.id).limit(CHUNK), of=ChangeRow
    )


async def _last_changes(
    work: UnitOfWork, schema: Schema, ids: Collection[Id], before: Id
) -> Mapping[Id, ChangeRow]:
    statement = (
        sa.select(
            CHANGES_WITH_CREATIONS.c.record_id,
            CHANGES_WITH_CREATIONS.c.kind,
            CHANGES_WITH_CREATIONS.c.actor_user_id,
            CHANGES_WITH_CREATIONS.c.at,
        )
        .where(
            CHANGES_WITH_CREATIONS.c.workspace_id == schema.workspace_id,
            CHANGES_WITH_CREATIONS.c.record_id.in_(ids),
            CHANGES_WITH_CREATIONS.c.id < before,
        )
        .ext(distinct_on(CHANGES_WITH_CREATIONS.c.record_id))
        .order_by(CHANGES_WITH_CREATIONS.c.record_id, CHANGES_WITH_CREATIONS.c.id.desc())
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


async def notify_assigned(
    work: UnitOfWork, actor: Actor, schema: Schema, plans: Sequence[Planned]
) -> None:
    """Notify who is in a person field now and was not before; rows that come in tell no one."""
    keys = [key for key, spec in schema.fields.items() if spec.kind is FieldKind.PERSON]
    if not keys or actor.principal.bulk:
        return
    assigned = [(plan, dict(_added(plan, keys))) for plan in plans]
    # An assignment to oneself is not notified, and costs no statement.
    if not any(people.keys() - {actor.person} for _, people in assigned):
        return
    item_id = await work.scalar(item_of_database(schema.workspace_id, schema.database_id))
    name = await display_name(work, actor.person)
    notices = [
        ([user_id], _notice(actor, plan, item_id, name, key))
        for plan, people in assigned
        for user_id, key in people.items()
    ]
    await notify_each(work, schema.workspace_id, notices)


def _notice(actor: Actor, plan: Planned, item_id: Id, name: str, key: str) -> Notice:
    return Notice(
        kind=NotificationKind.ASSIGNMENT,
        title=about(f"{name} assigned “{plan.after.title}” to you"),
        item_id=item_id,
        record_id=plan.after.id,
        run_id=actor.principal.run_id,
        actor_user_id=actor.person,
        data={"fieldKey": key},
    )


def _added(plan: Planned, keys: Sequence[str]) -> Iterator[tuple[Id, str]]:
    """The people a write has assigned, and the field that says so."""
    if plan.kind in {None, ChangeKind.DELETED}:
        return
    for key in keys:
        before = () if plan.before is None else plan.before.data.get(key) or ()
        for text in plan.after.data.get(key) or ():
            user_id = parse_id(text) if isinstance(text, str) else None
            if user_id is not None and text not in before:
                yield user_id, key
