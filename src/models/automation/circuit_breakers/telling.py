"""Telling the log and the author of an automation that its circuit breaker opened or closed."""

from typing import Protocol

from sqlalchemy import select

from models.automation.automations.joins import AUTOMATION, VERSION
from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.workspace_events.commands import append_event
from models.messages.workspace_events.rules import EventType
from runtime.database import UnitOfWork
from runtime.timestamps import wire_timestamp


class _Told(Protocol):
    workspace_id: Id
    label: str
    item_id: Id
    author_id: Id | None


async def tell(work: UnitOfWork, automation_id: Id, event: EventType, verb: str, body: str) -> None:
    """Log that a circuit breaker moved, and notify who made the published version."""
    row = await work.first(
        select(
            AUTOMATION.workspace_id,
            AUTOMATION.label,
            AUTOMATION.item_id,
            VERSION.created_by_user_id.label("author_id"),
        )
        .select_from(AUTOMATION.id.table)
        .outerjoin(VERSION.id.table, VERSION.id == AUTOMATION.published_version_id)
        .where(AUTOMATION.id == automation_id),
        of=_Told,
    )
    assert row is not None, "the breaker refers to its automation"
    principal = Principal(type=PrincipalType.SYSTEM, id=automation_id, user_id=automation_id)
    data = {"automationId": str(automation_id)}
    await append_event(work, principal, row.workspace_id, event, data, item_id=row.item_id)
    if row.author_id is None:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_FAILED,
        title=f"“{row.label}” {verb}",
        body=body,
        item_id=row.item_id,
        data=data,
        key=f"{event}/{automation_id}/{wire_timestamp(work.now)}",
    )
    await notify(work, row.workspace_id, [row.author_id], notice)
