"""The subscribers of events, and the events that wait."""

from typing import Any, Protocol

from sqlalchemy import ARRAY, ColumnElement, Select, Text, Uuid, bindparam, func, literal, select

from models.core.base import Id
from models.messages.events.rules import RECORD_SUBSCRIPTIONS
from models.messages.events.tables import automation_subscription, trigger_event
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work

_subscription = automation_subscription.c


class _Subscribers(Protocol):
    """Of all subscriptions to a database: None without any, else whether one takes all changes."""

    include_system: bool | None


_RECORD_SUBSCRIBERS = PreparedStatement(
    select(func.bool_or(_subscription.include_system).label("include_system")).where(
        _subscription.workspace_id == bindparam("workspace_id", type_=Uuid),
        _subscription.kind == func.any(literal(list(RECORD_SUBSCRIPTIONS), ARRAY(Text))),
        _subscription.subject_id == bindparam("database_id", type_=Uuid),
    ),
    _Subscribers,
)


async def has_record_subscriber(
    work: Work, workspace_id: Id, database_id: Id, *, system: bool
) -> bool:
    """True when any automation subscribes to changes of a database's records.

    `system` asks for automations that also take what the platform writes by itself.
    """
    parameters = {"workspace_id": workspace_id, "database_id": database_id}
    (found,) = await _RECORD_SUBSCRIBERS.rows(work, parameters)
    return found.include_system is not None and (found.include_system or not system)


def waiting_events() -> Select[Any]:
    """The number of events that wait for the dispatcher, and the moment of the oldest of them."""
    oldest: ColumnElement[Any] = func.min(trigger_event.c.created_at).label("oldest")
    waiting: ColumnElement[Any] = func.count().label("waiting")
    return select(waiting, oldest)
