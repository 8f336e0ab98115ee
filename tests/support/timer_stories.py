"""Histories of countdowns: one that ends by itself, one that is moved and ended by hand."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sqlalchemy import select

from activities.maintenance.work_handlers import describe_execution
from models.core.base import Id
from models.data.time_entries.commands import start_entry, update_entry
from models.data.time_entries.shapes import StartTimeEntry, TimeEntryDetail, UpdateTimeEntry
from models.data.time_entries.tables import TimeEntry, time_entry
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine
from tests.support.patience import eventually


async def start(engine: Engine, **body: Any) -> TimeEntryDetail:
    """A countdown of the engine's actor, on the workspace."""
    said = {"targetKind": "workspace", "mode": "countdown", **body}
    async with engine.database.transaction() as work:
        shape = StartTimeEntry.model_validate(said)
        return (await start_entry(work, engine.actor, new_id(), shape)).entry


async def change(engine: Engine, entry_id: Id, **body: Any) -> TimeEntryDetail:
    async with engine.database.transaction() as work:
        shape = UpdateTimeEntry.model_validate(body)
        return (await update_entry(work, engine.actor, entry_id, shape)).entry


async def row(engine: Engine, entry_id: Id) -> TimeEntry:
    async with engine.database.reading() as work:
        found = select(time_entry).where(time_entry.c.id == entry_id)
        (one,) = await work.rows(found, of=TimeEntry)
        return one


async def ended(engine: Engine, entry_id: Id) -> TimeEntry:
    """The row once it is closed."""

    async def is_over() -> bool:
        return (await row(engine, entry_id)).closed_at is not None

    await eventually(is_over, what=f"the end of time entry {entry_id}")
    return await row(engine, entry_id)


async def waits(engine: Engine, entry_id: Id, signals: int = 0) -> None:
    """Wait until the execution of an entry has handled this number of signals, and is idle."""
    workflow_id = WorkflowKind.TIMER_DUE.workflow_id(entry_id)
    handle = engine.client.get_workflow_handle(workflow_id)

    async def rests() -> bool:
        found = await describe_execution(engine.client, workflow_id)
        if found is None or not found.sleeps:
            return False
        events = (await handle.fetch_history()).events
        heard = [
            one for one in events if one.HasField("workflow_execution_signaled_event_attributes")
        ]
        return len(heard) == signals

    await eventually(rests, what=f"signal {signals} of time entry {entry_id}")


async def timer_due(engine: Engine) -> str:
    """A countdown that ends by itself."""
    entry = await start(engine, targetDurationMs=300)
    await ended(engine, entry.id)
    return WorkflowKind.TIMER_DUE.workflow_id(entry.id)


async def timer_moved(engine: Engine) -> str:
    """A countdown that is paused, continued and ended by hand."""
    entry = await start(engine, targetDurationMs=3_600_000)
    await waits(engine, entry.id)
    await change(engine, entry.id, action="pause")
    await waits(engine, entry.id, 1)
    await change(engine, entry.id, action="resume")
    await waits(engine, entry.id, 2)
    await change(engine, entry.id, action="complete")
    return WorkflowKind.TIMER_DUE.workflow_id(entry.id)


TIMER_STORIES: Mapping[str, Callable[[Engine], Awaitable[str]]] = {
    "timer-due": timer_due,
    "timer-moved": timer_moved,
}
