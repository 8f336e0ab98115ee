"""Deliveries: attempted until they arrive or expire, and counted once after any crash."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.families.background import Deliveries
from models.core.base import Id
from models.messages.deliveries import rules
from models.messages.deliveries.commands import cancel_deliveries
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.notifications.tables import notification
from models.people.users import find_user
from runtime.temporal.families import Family
from tests.support.delivery_stories import (
    attempted,
    ended,
    execution_of,
    mail,
    member,
    row,
    sending,
    tell,
)
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.post_office import Delivered, PostOffice

pytestmark = pytest.mark.takes(seconds=10)


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt follows at once."""
    monkeypatch.setitem(rules.PAUSES, DeliveryChannel.MAIL, (0.05, 0.05))


async def mails(engine: Engine, office: PostOffice, user_id: Id) -> list[Delivered]:
    async with engine.database.reading() as work:
        user = await find_user(work, user_id)
    assert user is not None
    assert user.email is not None
    return office.to(user.email)


async def fate(engine: Engine, delivery_id: Id) -> WorkflowExecutionStatus:
    """How the latest execution ended."""
    latest = execution_of(await row(engine, delivery_id))
    handle = engine.client.get_workflow_handle(latest)

    async def is_over() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(is_over, what=f"the end of the execution of {delivery_id}")
    status = (await handle.describe()).status
    assert status is not None
    return status


async def sweep(engine: Engine) -> dict[str, int]:
    await engine.delivered(Family.DELIVERY)
    reconciler = Reconciler(engine.database, engine.client, [Deliveries()], grace=timedelta())
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    return await environment.run(reconciler.reconcile)


async def test_a_notification_arrives_by_mail(engine: Engine, post_office: PostOffice) -> None:
    user_id = await member(engine)
    told = await tell(engine, user_id, title="Tea is ready", body="Come down.")
    delivery_id = await mail(engine, told)
    assert await mail(engine, told) == delivery_id
    found = await ended(engine, delivery_id)
    assert (found.status, found.attempts, found.error) == ("delivered", 1, None)
    assert await fate(engine, delivery_id) is WorkflowExecutionStatus.COMPLETED
    ((arrived),) = await mails(engine, post_office, user_id)
    assert arrived.message["Subject"] == "Tea is ready"
    assert arrived.message.get_content().strip() == "Come down."
    assert str(delivery_id) in arrived.message["Message-ID"]


@pytest.mark.long
@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(
    ("kind", "status", "attempts", "answered", "arrived"),
    [
        ("later", "delivered", 2, None, 1),
        ("never", "failed", 3, 451, 0),
        ("refused", "failed", 1, 550, 0),
        ("spam", "failed", 1, 554, 0),
    ],
)
async def test_it_is_attempted_while_that_may_help(
    engine: Engine,
    post_office: PostOffice,
    kind: str,
    status: str,
    attempts: int,
    answered: int | None,
    arrived: int,
) -> None:
    user_id = await member(engine, kind)
    delivery_id = await mail(engine, await tell(engine, user_id))
    found = await ended(engine, delivery_id)
    assert (found.status, found.attempts, found.answer_status) == (status, attempts, answered)
    assert "@" not in (found.error or ""), "operators read it"
    assert len(await mails(engine, post_office, user_id)) == arrived
    failed = status == "failed"
    expected = WorkflowExecutionStatus.FAILED if failed else WorkflowExecutionStatus.COMPLETED
    assert await fate(engine, delivery_id) is expected


@pytest.mark.usefixtures("_soon")
async def test_a_notification_read_meanwhile_is_not_sent(
    engine: Engine, post_office: PostOffice
) -> None:
    user_id = await member(engine)
    told = await tell(engine, user_id)
    async with engine.database.transaction() as work:
        this = notification.c.id == told.id
        await work.execute(update(notification).where(this).values(read_at=work.now))
    found = await ended(engine, await mail(engine, told))
    assert (found.status, found.error_code) == ("undeliverable", "unwanted")
    assert await mails(engine, post_office, user_id) == []


async def test_a_cancelled_one_ends_while_it_waits(engine: Engine) -> None:
    user_id = await member(engine, "never")
    delivery_id = await mail(engine, await tell(engine, user_id))
    waiting = await attempted(engine, delivery_id)
    assert not waiting.executing
    assert await fate(engine, delivery_id) is WorkflowExecutionStatus.COMPLETED
    async with engine.database.transaction() as work:
        place = engine.actor.workspace_id
        assert await cancel_deliveries(work, place, [delivery_id]) == [delivery_id]
    assert (await row(engine, delivery_id)).status == "cancelled"


async def test_a_cancelled_one_ends_while_it_is_sent(engine: Engine) -> None:
    delivery_id = await mail(engine, await tell(engine, await member(engine, "silent")))
    await sending(engine, delivery_id)
    async with engine.database.transaction() as work:
        place = engine.actor.workspace_id
        assert await cancel_deliveries(work, place, [delivery_id]) == [delivery_id]
    assert await fate(engine, delivery_id) is WorkflowExecutionStatus.CANCELED


async def test_cancelling_the_execution_cancels_the_delivery(engine: Engine) -> None:
    delivery_id = await mail(engine, await tell(engine, await member(engine, "silent")))
    sent = await sending(engine, delivery_id)
    await engine.client.get_workflow_handle(execution_of(sent)).cancel()
    assert (await ended(engine, delivery_id)).status == "cancelled"


async def test_the_row_of_a_dead_execution_is_closed(engine: Engine) -> None:
    delivery_id = await mail(engine, await tell(engine, await member(engine, "silent")))
    sent = await sending(engine, delivery_id)
    await engine.client.get_workflow_handle(execution_of(sent)).terminate()

    async def is_closed() -> bool:
        await sweep(engine)
        return (await row(engine, delivery_id)).status == "failed"

    await eventually(is_closed, what=f"the end of delivery {delivery_id}")
    assert (await row(engine, delivery_id)).error == "Terminated in Temporal."
