"""Runs that came to wait for one another's slots are freed by the reconciler."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from uuid import UUID

import pytest
from sqlalchemy import select
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.runs import AutomationRuns
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import commands as automations
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.core.base import JsonObject
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import eventually
from tests.support.waits import held, publish, waiting

pytestmark = [pytest.mark.crash, pytest.mark.long]

ONE_AT_A_TIME = {"kind": "automation_called", "concurrency": {"limit": 1}}


async def sweep(engine: Engine) -> dict[str, int]:
    activities = Reconciler(
        engine.database, engine.client, [AutomationRuns()], grace=timedelta(minutes=5)
    )
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    counts = await environment.run(activities.reconcile)
    return {name.removeprefix("automation_runs_"): count for name, count in counts.items()}


def calls(automation_id: UUID, deeper: bool) -> JsonObject:
    given = {"automationId": str(automation_id), "input": {"deeper": deeper}}
    return held("call", "call_automation", given)


def on_an_event(automation_id: UUID) -> JsonObject:
    """Keep the slot until an event, then call; what is called so ends at once."""
    return graph(
        node("deeper", "condition", expression="trigger.deeper"),
        held("hear", "wait_event", {"eventKey": "cross"}),
        calls(automation_id, deeper=False),
        edges=[("deeper", "hear", "true"), ("hear", "call")],
    )


async def statuses(engine: Engine) -> list[str]:
    """Of all open runs."""
    runs = [row.id for row in await engine.open_runs()]
    async with engine.database.transaction() as work:
        run = automation_run.c
        return [row.status for row in await work.rows(select(run.status).where(run.id.in_(runs)))]


async def test_of_two_runs_that_want_each_others_slot_one_is_refused(engine: Engine) -> None:
    quick = graph(node("only", "transform", output={}))
    one = await engine.publish(quick, triggerConfig=ONE_AT_A_TIME)
    other = await engine.publish(on_an_event(one.id), triggerConfig=ONE_AT_A_TIME)
    async with engine.database.transaction() as work:
        body = UpdateAutomation.model_validate({"graph": on_an_event(other.id)})
        await automations.update_automation(work, engine.actor, KEYS, one.id, body)
    async with engine.database.transaction() as work:
        live = PublishAutomation.model_validate({})
        await automations.publish(work, engine.actor, KEYS, one.id, live)
    places = [
        await waiting(engine, graph(calls(called.id, deeper=True))) for called in (one, other)
    ]

    async def both_hold() -> bool:
        return await statuses(engine) == ["waiting"] * 4

    async def both_wait() -> bool:
        return sorted(await statuses(engine)) == ["queued"] * 2 + ["waiting"] * 4

    await eventually(both_hold, what="two runs that hold their slots")
    assert await publish(engine, "cross") == 2
    await eventually(both_wait, what="two runs in line")
    assert (await sweep(engine))["refused"] == 1
    runs = sorted(
        [await engine.ended(*place) for place in places], key=attrgetter("status"), reverse=True
    )
    assert [run.status for run in runs] == ["succeeded", "failed"]
    assert runs[1].error is not None
    assert "Deadlock" in runs[1].error
    assert (await sweep(engine))["refused"] == 0
