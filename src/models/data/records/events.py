"""The events of changed records, kept in the transaction of whoever writes.

Writers ask once whether any automation subscribes to the database. If one does, every change is
kept as it is: what later happens to the record changes nothing of the event.
"""

from collections.abc import Mapping, Sequence

from models.core.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.data.fields.rules.fields import Schema
from models.data.record_changes.rules import ChangeKind
from models.data.records.queries.details import record_details
from models.data.records.rules.events import bounded, differing
from models.data.records.rules.write.writes import Planned, StoredRecord
from models.data.records.shapes import RecordDetail
from models.messages.events.commands import emit_record_changes
from models.messages.events.queries import has_record_subscriber
from runtime.database import UnitOfWork

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
    events = [bounded(change) for change in await _changes(work, actor, schema, changes, rows)]
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
    principal = Principal(type=PrincipalType.SYSTEM, id=workspace_id, user_id=workspace_id)
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
        "gone": plan.kind is ChangeKind.DELETED,
        "system": _is_system(actor),
    }


def _was_there(plan: Planned) -> bool:
    return plan.before is not None and plan.before.deleted_at is None


def _as_it_was(schema: Schema, plan: Planned, past: RecordDetail) -> JsonObject:
    """The record before; its links are read after, but for the ones that the write changed."""
    assert plan.history is not None, "what changes nothing is no change"
    snapshot = past.to_json()
    del snapshot["related"]
    old = plan.history.before or {}
    for key in plan.changed_keys:
        if key in schema.fields and schema.fields[key].relation:
            snapshot["relations"][key] = old.get(key, [])
    return snapshot
