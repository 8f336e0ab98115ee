"""Deliveries as tests of them, and the recorder of histories, make and follow them."""

from typing import Any
from uuid import uuid4

from sqlalchemy import select

from models.core.access.rules import Role
from models.core.base import Id
from models.messages.deliveries.commands import Delivery, NewDelivery, accept_deliveries, delivery
from models.messages.deliveries.rules import OPEN_DELIVERY, DeliveryChannel
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.notifications.queries import Notification, notification
from models.people.workspaces import add_member
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import add_person


async def member(engine: Engine, kind: str = "fine", role: Role = Role.EDITOR) -> Id:
    """A member whose address says how the post office treats them."""
    email = f"{kind}-{uuid4().hex}@example.test"
    async with engine.database.transaction() as work:
        user_id = await add_person(work, email)
        await add_member(work, engine.actor.workspace_id, user_id, role)
    return user_id


async def tell(
    engine: Engine, user_id: Id, kind: NotificationKind = NotificationKind.SYSTEM, **facts: Any
) -> Notification:
    """A new notification of a user."""
    notice = Notice(kind=kind, title=facts.pop("title", "Something happened"), **facts)
    async with engine.database.transaction() as work:
        await notify(work, engine.actor.workspace_id, [user_id], notice)
        newest = select(notification).where(notification.c.user_id == user_id)
        newest = newest.order_by(notification.c.created_at.desc()).limit(1)
        (row,) = await work.rows(newest, of=Notification)
    return row


async def mail(engine: Engine, told: Notification) -> Id:
    """The id of a delivery of a notification by mail."""
    wanted = NewDelivery(
        workspace_id=told.workspace_id,
        channel=DeliveryChannel.MAIL,
        subject_id=told.id,
        target_id=told.user_id,
    )
    async with engine.database.transaction() as work:
        await accept_deliveries(work, [wanted])
    return wanted.id


async def row(engine: Engine, delivery_id: Id) -> Delivery:
    async with engine.database.reading() as work:
        found = select(delivery).where(delivery.c.id == delivery_id)
        (one,) = await work.rows(found, of=Delivery)
        return one


async def ended(engine: Engine, delivery_id: Id) -> Delivery:
    """The row once it is closed."""

    async def is_over() -> bool:
        return (await row(engine, delivery_id)).status not in OPEN_DELIVERY

    await eventually(is_over, what=f"the end of delivery {delivery_id}")
    return await row(engine, delivery_id)


async def attempted(engine: Engine, delivery_id: Id) -> Delivery:
    """The row once it waits for its second attempt."""

    async def waits() -> bool:
        return (await row(engine, delivery_id)).next_attempt_at is not None

    await eventually(waits, what=f"the first attempt of delivery {delivery_id}")
    return await row(engine, delivery_id)


def execution_of(attempted_one: Delivery) -> str:
    """The id of the latest execution."""
    return WorkflowKind.DELIVERY.workflow_id(attempted_one.id, str(attempted_one.executions))


async def sending(engine: Engine, delivery_id: Id) -> Delivery:
    """The row once its first attempt is under way."""

    async def has_begun() -> bool:
        return (await row(engine, delivery_id)).attempts == 1

    await eventually(has_begun, what=f"the first attempt of delivery {delivery_id}")
    return await row(engine, delivery_id)


async def kept_in_temporal(engine: Engine, attempted_one: Delivery) -> str:
    """All that Temporal keeps of the latest execution, as text."""
    handle = engine.client.get_activity_handle(execution_of(attempted_one))
    described = await handle.describe(include_input=True, include_outcome=True)
    return f"{described.raw_info}{described.raw_input}{described.raw_outcome}"
