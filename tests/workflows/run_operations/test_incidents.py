"""From the first failure to the fix: grouped, retried on the new version, closed by itself."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update

from models.automation.automations import commands as automations
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.automation.incidents import commands, queries
from models.automation.incidents.closing import close_recovered
from models.automation.incidents.queries import IncidentDetail, RetryIncident
from models.automation.incidents.tables import incident
from models.core.base import Id
from runtime.clock import utc_now
from runtime.ids import new_id
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.incidents import grouped, incident_of
from tests.support.patience import found_when
from tests.support.run_operations import ended

pytestmark = pytest.mark.long


async def repair(engine: Engine, automation_id: UUID) -> None:
    """Publish a version whose node succeeds."""
    fixed = UpdateAutomation.model_validate({"graph": graph(node("fall", "transform", output={}))})
    async with engine.database.transaction() as work:
        await automations.update_automation(work, engine.actor, KEYS, automation_id, fixed)
    async with engine.database.transaction() as work:
        body = PublishAutomation.model_validate({})
        await automations.publish(work, engine.actor, KEYS, automation_id, body)


async def checked(engine: Engine, incident_id: Id) -> IncidentDetail:
    """The incident after a check, as if a minute had passed."""
    long_ago = utc_now() - timedelta(days=1)
    async with engine.database.transaction() as work:
        of_it = incident.c.id == incident_id
        await work.execute(update(incident).where(of_it).values(checked_at=long_ago))
    async with engine.database.transaction() as work:
        await close_recovered(work)
    async with engine.database.transaction() as work:
        return await queries.get_incident(work, engine.actor, incident_id)


async def test_an_incident_is_retried_after_the_fix_and_closes_itself(engine: Engine) -> None:
    falling = graph(node("fall", "stop", result="failed", message="Order 7 fell."))
    automation = await engine.publish(falling)
    run_ids = [await engine.start(automation.id) for _ in range(3)]
    for run_id in run_ids:
        await engine.ended(automation.id, run_id)
    await grouped(engine.database)
    row = await incident_of(engine.database, run_ids[0])
    opened = await checked(engine, row.id)
    assert (opened.state, opened.runs) == ("open", 3)
    assert opened.message == "fall: Order <number> fell."
    assert opened.suspected_version is not None
    assert opened.suspected_version.version == 1
    await repair(engine, automation.id)
    operation_id = new_id()
    async with engine.database.transaction() as work:
        body = RetryIncident.model_validate({"from": "start"})
        await commands.retry_incident(work, engine.actor, row.id, operation_id, body)
    operation = await ended(engine, operation_id)
    assert (operation.succeeded, operation.failed) == (3, 0)

    async def read() -> IncidentDetail:
        return await checked(engine, row.id)

    closed = await found_when(read, lambda one: one.closed_at is not None, what="the close")
    assert (closed.close_reason, closed.unresolved) == ("retried", 0)
