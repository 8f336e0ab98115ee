"""Work that was open when a worker was lost."""

from sqlalchemy import select, update

from cli.work_handlers.background import Deliveries
from models.core.lifecycle.lost_workers import suspect_work, suspected_work
from models.messages.deliveries.commands import NewDelivery, accept_deliveries, delivery
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.jobs.store import JOBS, accept_job
from runtime.ids import new_id
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.spaces import Space


async def test_a_delivery_that_only_waits_is_no_suspect(space: Space) -> None:
    accepted = [
        NewDelivery(
            workspace_id=space.id,
            channel=DeliveryChannel.MAIL,
            subject_id=new_id(),
            target_id=new_id(),
        )
        for _ in range(2)
    ]
    executed, waiting = (one.id for one in accepted)
    workflow_kind = Deliveries()
    async with space.database.transaction() as work:
        await accept_deliveries(work, accepted)
        is_executed = delivery.c.id == executed
        both = update(delivery).where(delivery.c.workspace_id == space.id)
        await work.execute(both.values(executing=is_executed))
        await suspect_work(work, [(workflow_kind.kind, workflow_kind.rows())])
        suspects = await suspected_work(work)
    assert executed in suspects
    assert waiting not in suspects


async def test_work_whose_start_was_claimed_is_suspected_though_its_row_still_stands(
    space: Space,
) -> None:
    claimed, waiting = new_id(), new_id()
    async with space.database.transaction() as work:
        for job_id in (claimed, waiting):
            await accept_job(
                work, space.actor, WorkflowKind.EXPORT, job_id, space.id, summary="Export"
            )
        of_claimed = outbox.c.subject_id == claimed
        await work.execute(update(outbox).where(of_claimed).values(attempts=1))
        await suspect_work(work, [(JOBS, select(JOBS.table.c.id))])
        suspects = await suspected_work(work)
    assert claimed in suspects
    assert waiting not in suspects
