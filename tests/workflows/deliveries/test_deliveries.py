"""Deliveries: attempted until they arrive or expire, and counted once after any crash."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import update
from temporalio.client import ActivityExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ExecuteActivityInput

from activities.maintenance.reconciler import Reconciler
from activities.maintenance.work_handlers import describe_standalone
from activities.turns import OVERFLOWED, SlotShareInterceptor
from cli.work_handlers.background import Deliveries
from models.core.base import Id
from models.messages.deliveries import rules
from models.messages.deliveries.commands import cancel_deliveries, delivery
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.notifications.queries import notification
from models.people.users import find_user
from runtime.ids import new_id
from runtime.temporal.executions import fairness
from runtime.temporal.workflow_kinds import WorkflowKind
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


async def fate(engine: Engine, delivery_id: Id) -> ActivityExecutionStatus:
    """How the latest execution ended."""
    latest = execution_of(await row(engine, delivery_id))
    handle = engine.client.get_activity_handle(latest)

    async def is_over() -> bool:
        return (await handle.describe()).status is not ActivityExecutionStatus.RUNNING

    await eventually(is_over, what=f"the end of the execution of {delivery_id}")
    status = (await handle.describe()).status
    assert status is not None
    return status


async def sweep(engine: Engine) -> dict[str, int]:
    await engine.delivered(WorkflowKind.DELIVERY)
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
    assert await fate(engine, delivery_id) is ActivityExecutionStatus.COMPLETED
    ((arrived),) = await mails(engine, post_office, user_id)
    assert arrived.message["Subject"] == "Tea is ready"
    text, _, foot = arrived.message.get_content().replace("\r\n", "\n").partition("\n\n-- \n")
    assert text == "Come down."
    assert f"/workspaces/{engine.actor.workspace_id}/settings/notifications" in foot
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
    expected = ActivityExecutionStatus.FAILED if failed else ActivityExecutionStatus.COMPLETED
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
    assert await fate(engine, delivery_id) is ActivityExecutionStatus.COMPLETED
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
    assert await fate(engine, delivery_id) is ActivityExecutionStatus.CANCELED


async def test_cancelling_the_execution_cancels_the_delivery(engine: Engine) -> None:
    delivery_id = await mail(engine, await tell(engine, await member(engine, "silent")))
    sent = await sending(engine, delivery_id)
    await engine.client.get_activity_handle(execution_of(sent)).cancel()
    assert (await ended(engine, delivery_id)).status == "cancelled"


async def test_an_execution_that_was_lost_is_started_again(
    engine: Engine, post_office: PostOffice
) -> None:
    user_id = await member(engine, "later")
    delivery_id = await mail(engine, await tell(engine, user_id))
    waiting = await attempted(engine, delivery_id)
    async with engine.database.transaction() as work:
        await work.execute(
            update(delivery)
            .where(delivery.c.id == delivery_id)
            .values(executing=True, executions=waiting.executions + 1, next_attempt_at=None)
        )
    assert (await sweep(engine))["deliveries_restarted"] == 1
    assert (await ended(engine, delivery_id)).status == "delivered"
    alone = await describe_standalone(engine.client, execution_of(await row(engine, delivery_id)))
    assert alone is not None
    assert (alone.restarts, alone.reported_an_end) == (1, True)
    assert len(await mails(engine, post_office, user_id)) == 1


async def test_an_execution_without_a_row_is_terminated(engine: Engine) -> None:
    handle = await engine.client.start_activity(
        "deliver",
        str(new_id()),
        id=WorkflowKind.DELIVERY.workflow_id(new_id(), "1"),
        # This queue has no worker: it stays open, as one of a restored Temporal would.
        task_queue="nobody",
        start_to_close_timeout=timedelta(minutes=1),
    )

    async def is_terminated() -> bool:
        await sweep(engine)
        return (await handle.describe()).status is ActivityExecutionStatus.TERMINATED

    await eventually(is_terminated, what="the end of an orphan")


@pytest.mark.usefixtures("post_office")
async def test_operators_find_an_execution_by_its_attributes(engine: Engine) -> None:
    told = await tell(engine, await member(engine))
    found = await ended(engine, await mail(engine, told))
    assert found.status == "delivered"
    query = f"WorkspaceId='{engine.actor.workspace_id}' AND ResourceId='{told.id}'"

    async def is_listed() -> bool:
        listed = [one.activity_id async for one in engine.client.list_activities(query)]
        return listed == [execution_of(found)]

    await eventually(is_listed, what="the delivery in the list")


async def test_a_call_over_the_share_of_its_workspace_is_given_out_again() -> None:
    async def never(_: ExecuteActivityInput) -> None:
        raise AssertionError("it was made")

    following = SimpleNamespace(execute_activity=never)
    inbound = SlotShareInterceptor(0).intercept_activity(following)  # type: ignore[arg-type]  # one method is asked
    environment = ActivityEnvironment()
    priority = fairness(new_id(), WorkflowKind.DELIVERY)
    call = ExecuteActivityInput(fn=never, args=[], executor=None, headers={})
    for workflow_id, again in (("delivery/1/1", False), (None, True)):
        environment.info = replace(environment.info, workflow_id=workflow_id, priority=priority)
        with pytest.raises(ApplicationError) as refused:
            await environment.run(inbound.execute_activity, call)
        assert (refused.value.type, refused.value.non_retryable) == (OVERFLOWED, not again)
        assert (refused.value.next_retry_delay is not None) is again


async def test_the_row_of_a_dead_execution_is_closed(engine: Engine) -> None:
    delivery_id = await mail(engine, await tell(engine, await member(engine, "silent")))
    sent = await sending(engine, delivery_id)
    await engine.client.get_activity_handle(execution_of(sent)).terminate()

    async def is_closed() -> bool:
        await sweep(engine)
        return (await row(engine, delivery_id)).status == "failed"

    await eventually(is_closed, what=f"the end of delivery {delivery_id}")
    assert (await row(engine, delivery_id)).error == "Terminated in Temporal."
