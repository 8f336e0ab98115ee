"""Emitting an event in the transaction that made it happen: rolled back, it never was."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, literal, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations.rules.triggers.configs import TriggerKind
from models.automation.triggers.rules.changes import HEARD_BY
from models.automation.triggers.tables import automation_subscription, trigger_event
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.ids import derived_id, new_id


async def emit(
    work: UnitOfWork,
    workspace_id: Id,
    kind: TriggerKind,
    subject_id: Id,
    payload: JsonObject,
    *,
    chain: Sequence[Id] = (),
    event_id: Id | None = None,
    heard_by: Sequence[Id] = (),
) -> None:
    """Keep an event for the dispatcher if any automation listens to it.

    `payload` becomes the trigger payload of every run (decisions C7). An `event_id` derived from
    what happened makes a repeated emission harmless. The automations in `heard_by` answer what
    happened otherwise, and not once more for the event.
    """
    event = {
        "event_id": event_id or new_id(),
        "workspace_id": workspace_id,
        "kind": kind.value,
        "subject_id": subject_id,
        "payload": {**payload, HEARD_BY: [str(one) for one in heard_by]} if heard_by else payload,
        "chain": list(chain),
        "attempts": 0,
        "created_at": work.now,
        "due_at": work.now,
    }
    values = [literal(value, trigger_event.c[name].type) for name, value in event.items()]
    kept = await work.execute(
        upsert(trigger_event)
        .from_select(list(event), select(*values).where(_heard(workspace_id, kind, subject_id)))
        .on_conflict_do_nothing(index_elements=["event_id"])
    )
    if kept.rowcount:
        work.notify_workers = True


def _heard(workspace_id: Id, kind: TriggerKind, subject_id: Id) -> ColumnElement[bool]:
    listens = automation_subscription.c
    return (
        select(literal(1))
        .where(
            listens.workspace_id == workspace_id,
            listens.kind == kind,
            or_(listens.subject_id == subject_id, listens.subject_id.is_(None)),
        )
        .exists()
    )


async def data_source_finished(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id, run: JsonObject
) -> None:
    """A refresh has ended; `run` shows it, with its `id` and its `status`."""
    kind = TriggerKind.DATA_SOURCE_FINISHED
    event_id = derived_id(kind, run["id"])
    await emit(work, workspace_id, kind, data_source_id, {"run": run}, event_id=event_id)


async def time_entry_completed(
    work: UnitOfWork, workspace_id: Id, entry: JsonObject, database_id: Id | None = None
) -> None:
    """A time entry was completed; `entry` shows it, `database_id` holds the record it is for."""
    kind = TriggerKind.TIME_ENTRY_COMPLETED
    shown = {**entry, "databaseId": None if database_id is None else str(database_id)}
    entry_id = Id(entry["id"])
    event_id = derived_id(kind, entry_id)
    await emit(work, workspace_id, kind, entry_id, {"entry": shown}, event_id=event_id)
