"""Who listens to an event, as far as it may run now."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ARRAY, Text, Uuid, bindparam, func, or_, select

from models.automation.automation_runs import runnable_versions
from models.automation.automations.rules.triggers.configs import TriggerKind
from models.automation.triggers.rules.kinds import RECORD_TRIGGERS, subject_of
from models.core.base import Id, JsonObject
from models.data.databases.field_rows import find_fields
from models.data.databases.rules.fields import FieldSpecs
from models.messages.events.rules import EventKind
from models.messages.events.tables import automation_subscription
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement


@dataclass(frozen=True, slots=True)
class Listener:
    """An automation that may run, with its live version (a row of `runnable`)."""

    workspace_id: Id
    version: Any
    fields: FieldSpecs
    """Those of the database it listens to, when it filters the changes of its records."""

    @property
    def automation_id(self) -> Id:
        automation_id: Id = self.version.automation_id
        return automation_id

    @property
    def config(self) -> JsonObject:
        config: JsonObject = self.version.trigger_config
        return config

    @property
    def kind(self) -> TriggerKind:
        return TriggerKind(self.config["kind"])


_table = automation_subscription.c
_SUBSCRIBED = PreparedStatement(
    select(automation_subscription)
    .where(
        _table.workspace_id == bindparam("workspace_id", type_=Uuid),
        _table.kind == func.any(bindparam("kinds", type_=ARRAY(Text))),
        or_(
            _table.subject_id == bindparam("subject_id", type_=Uuid),
            _table.subject_id.is_(None),
        ),
    )
    .order_by(_table.automation_id)
)
_NAMED = PreparedStatement(
    select(automation_subscription).where(
        _table.workspace_id == bindparam("workspace_id", type_=Uuid),
        _table.automation_id == bindparam("subject_id", type_=Uuid),
        _table.kind == TriggerKind.RECORD_DATE_REACHED.value,
    )
)


class Audience:
    """Who listens to the events of one batch; each question is asked once."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._subscribed: dict[tuple[Any, ...], Sequence[Any]] = {}
        self._listeners: dict[Id, Listener | None] = {}

    async def of(self, event: Any) -> list[Listener]:
        """The automations that listen to an event (a row of `trigger_event`) and may run.

        Each was published and enabled when the event was emitted and is so now.
        """
        found = [
            await self._listener(row, event.workspace_id)
            for row in await self._rows(event)
            if row.after_event < event.id
        ]
        return [one for one in found if one is not None]

    async def _rows(self, event: Any) -> Sequence[Any]:
        key = (event.workspace_id, event.kind, event.subject_id)
        if key not in self._subscribed:
            self._subscribed[key] = await _subscriptions(self._work, event)
        return self._subscribed[key]

    async def _listener(self, row: Any, workspace_id: Id) -> Listener | None:
        if row.automation_id not in self._listeners:
            found = await listener(self._work, row, workspace_id)
            self._listeners[row.automation_id] = found
        return self._listeners[row.automation_id]


async def _subscriptions(work: UnitOfWork, event: Any) -> Sequence[Any]:
    parameters = {"workspace_id": event.workspace_id, "subject_id": event.subject_id}
    if event.kind == EventKind.RECORD_DATE_REACHED:
        return await _NAMED.rows(work, parameters)
    changed = event.kind == EventKind.RECORD_CHANGED
    kinds = list(RECORD_TRIGGERS) if changed else [event.kind]
    return await _SUBSCRIBED.rows(work, {**parameters, "kinds": kinds})


async def listener(work: UnitOfWork, subscription: Any, workspace_id: Id) -> Listener | None:
    """The automation of a subscription; None unless it may run and listens to just that."""
    version = await runnable_versions.live(work, workspace_id, subscription.automation_id)
    if version is None:
        return None
    config = version.trigger_config
    if (config["kind"], subject_of(config)) != (subscription.kind, subscription.subject_id):
        return None
    return Listener(workspace_id, version, await _fields(work, workspace_id, config))


async def _fields(work: UnitOfWork, workspace_id: Id, config: JsonObject) -> FieldSpecs:
    if config["kind"] not in RECORD_TRIGGERS or not isinstance(config.get("filter"), dict):
        return {}
    database_id = subject_of(config)
    assert database_id is not None, "a record trigger names its database"
    return await find_fields(work, workspace_id, database_id)
