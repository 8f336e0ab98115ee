"""Automations that listen, as tests make them, and what they were told."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select, update

from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.commands import create_automation, publish, update_automation
from models.automation.automations.shapes import (
    AutomationDetail,
    CreateAutomation,
    PublishAutomation,
    UpdateAutomation,
)
from models.automation.automations.tables import automation
from models.automation.triggers.subscribers import debounced_change
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.records.commands import (
    archive_record,
    create_record,
    delete_record,
    restore_record,
    update_record,
)
from models.data.records.shapes import CreateRecord, RecordDetail, UpdateRecord
from models.messages.events.store import automation_subscription, trigger_event
from runtime.clock import utc_now
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from tests.support.engine import KEYS
from tests.support.patience import eventually, found_when

Json = dict[str, Any]

NOTHING: Json = {"nodes": [{"id": "t", "kind": "transform", "config": {"output": {"ok": True}}}]}
FIELDS = [
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "text"},
    {"label": "Day", "kind": "date"},
    {"label": "Moment", "kind": "datetime"},
]


class Listening:
    """One workspace whose automations listen to one database."""

    def __init__(self, database: Database, actor: Actor, table: Id, keys: KeyRing = KEYS) -> None:
        self.database = database
        self.actor = actor
        self.table = table
        self.keys = keys
        self.since = utc_now()
        """Runs and automations of the workspace that are older are another test's."""

    @classmethod
    async def within(
        cls, database: Database, actor: Actor, *fields: Json, keys: KeyRing = KEYS
    ) -> "Listening":
        """A fresh database in the actor's workspace."""
        body = CreateDatabase.model_validate({"label": "Goods", "fields": [*FIELDS, *fields]})
        async with database.transaction() as work:
            return cls(database, actor, (await create_database(work, actor, body)).id, keys)

    async def automation(
        self, kind: str, graph: Json | None = None, *, at_database: bool = True, **config: Any
    ) -> Id:
        """A published, enabled automation with this trigger."""
        made = await self.draft(kind, graph, at_database=at_database, **config)
        await self.publish(made)
        return made

    async def draft(
        self, kind: str, graph: Json | None = None, *, at_database: bool = True, **config: Any
    ) -> Id:
        """An enabled automation that was never published."""
        body = {
            "label": kind,
            "enabled": True,
            "graph": graph or NOTHING,
            "triggerConfig": self.config(kind, at_database=at_database, **config),
        }
        async with self.database.transaction() as work:
            made = CreateAutomation.model_validate(body)
            return (await create_automation(work, self.actor, self.keys, made)).id

    def config(self, kind: str, *, at_database: bool = True, **config: Any) -> Json:
        """A trigger config, on the database unless it listens to something else."""
        own = {"databaseId": str(self.table)} if at_database else {}
        return {"kind": kind, **own, **config}

    async def publish(self, automation_id: Id) -> AutomationDetail:
        async with self.database.transaction() as work:
            body = PublishAutomation.model_validate({})
            return await publish(work, self.actor, self.keys, automation_id, body)

    async def change(self, automation_id: Id, **body: Any) -> AutomationDetail:
        async with self.database.transaction() as work:
            asked = UpdateAutomation.model_validate(body)
            return await update_automation(work, self.actor, self.keys, automation_id, asked)

    async def create(self, title: str = "", **data: Any) -> RecordDetail:
        async with self.database.transaction() as work:
            return await self.create_within(work, title, **data)

    async def create_unheard(self, title: str = "", **data: Any) -> RecordDetail:
        """A record whose events are not dispatched before `release`."""
        async with self.database.transaction() as work:
            made = await self.create_within(work, title, **data)
            await work.execute(self.of_events().values(due_at=datetime(9999, 1, 1, tzinfo=UTC)))
        return made

    async def release(self) -> None:
        async with self.database.transaction() as work:
            await work.execute(self.of_events().values(due_at=trigger_event.c.created_at))

    def of_events(self) -> Any:
        """An update of the events that wait in the workspace."""
        mine = trigger_event.c.workspace_id == self.actor.workspace_id
        return update(trigger_event).where(mine)

    async def create_within(
        self, work: UnitOfWork, title: str = "", actor: Actor | None = None, **data: Any
    ) -> RecordDetail:
        body = CreateRecord.model_validate({"title": title, "data": data})
        return await create_record(work, actor or self.actor, self.table, body)

    async def set(self, record_id: Id, actor: Actor | None = None, **data: Any) -> RecordDetail:
        async with self.database.transaction() as work:
            body = UpdateRecord.model_validate({"data": data})
            return await update_record(work, actor or self.actor, record_id, body)

    async def archive(self, record_id: Id) -> None:
        async with self.database.transaction() as work:
            await archive_record(work, self.actor, record_id)

    async def restore(self, record_id: Id) -> None:
        async with self.database.transaction() as work:
            await restore_record(work, self.actor, record_id)

    async def delete(self, record_id: Id) -> None:
        async with self.database.transaction() as work:
            await delete_record(work, self.actor, record_id)

    async def runs(self, automation_id: Id) -> Sequence[Any]:
        """The runs of an automation once nothing waits to be dispatched, oldest first."""
        await self.heard()
        async with self.database.transaction() as work:
            return await work.rows(
                select(automation_run)
                .where(automation_run.c.automation_id == automation_id)
                .order_by(automation_run.c.created_at, automation_run.c.id)
            )

    async def payloads(self, automation_id: Id) -> list[Json]:
        return [run.trigger_payload for run in await self.runs(automation_id)]

    async def count(self, automation_id: Id) -> int:
        return len(await self.runs(automation_id))

    async def events(self) -> Sequence[Any]:
        """The events that wait in the workspace."""
        async with self.database.transaction() as work:
            return await work.rows(
                select(trigger_event).where(trigger_event.c.workspace_id == self.actor.workspace_id)
            )

    async def heard(self) -> None:
        """Wait until no event waits."""

        async def none() -> bool:
            return not await self.events()

        await eventually(none, what="the dispatch of all events")

    async def quiet(self) -> None:
        """Wait until no event, burst or open run is left."""

        async def left() -> Sequence[Any]:
            await self.heard()
            async with self.database.transaction() as work:
                mine = self.actor.workspace_id
                bursts = select(debounced_change).where(
                    debounced_change.c.automation_id.in_(
                        select(automation.c.id).where(
                            automation.c.workspace_id == mine,
                            automation.c.created_at >= self.since,
                        )
                    )
                )
                open_runs = select(automation_run.c.id, automation_run.c.status).where(
                    automation_run.c.workspace_id == mine,
                    automation_run.c.status.in_(OPEN_RUN),
                    automation_run.c.created_at >= self.since,
                )
                rows = [*await work.rows(bursts), *await work.rows(open_runs)]
            return rows or await self.events()

        await found_when(left, lambda rows: not rows, "the end of everything")

    async def subscription(self, automation_id: Id) -> Any:
        async with self.database.transaction() as work:
            return await work.first(
                select(automation_subscription).where(
                    automation_subscription.c.automation_id == automation_id
                )
            )
