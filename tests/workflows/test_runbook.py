"""The commands of temporal/RUNBOOK.md work as written, and our rows are true afterwards."""

import asyncio
import json
import os
import re
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, update
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.runs import AutomationRuns
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.core.base import Id
from models.messages.deliveries.commands import (
    NewDelivery,
    accept_deliveries,
    delivery_line,
    give_up_waiting,
)
from models.messages.deliveries.rules import EXPIRED, DeliveryChannel
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import close_job, job, record_job
from models.sources.data_source_runs.overviews import get_data_source
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.queries import CreateDataSource
from runtime.ids import new_id
from runtime.temporal.executions import search_attributes
from runtime.temporal.outbox import Intent, append, outbox
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.support.endpoint import Serve, reply
from tests.support.engine import VERSION, Engine, by_node, graph, node
from tests.support.patience import eventually
from tests.support.runbook import BLOCKS
from tests.support.schedules import until_schedule
from tests.support.temporal import dev_server

# One of its commands replays all that its process has run before.
pytestmark = pytest.mark.takes(seconds=60)

LOOKS = ("Connect", "Find executions", "Look at one run", "Queues and workers", "What waits")
"""Sections whose commands only read."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an operator sits: a checkout with a running platform, and the ids at hand."""

    engine: Engine
    directory: Path
    automation_id: Id
    run_id: Id
    data_source_id: Id | None = None

    async def run(self, title: str, number: int = 0) -> str:
        """What a block of a section printed; it must succeed."""
        script = f"{BLOCKS['Connect'][0]}\n{BLOCKS[title][number]}"
        process = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", script,
            cwd=self.directory,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("TEMPORAL_")},
                "PYTHONPATH": os.pathsep.join(sys.path),
                "WORKSPACE_ID": str(self.engine.actor.workspace_id),
                "AUTOMATION_ID": str(self.automation_id),
                "DATA_SOURCE_ID": str(self.data_source_id),
                "RUN_ID": str(self.run_id),
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        # One of the commands replays all that this session has run.
        output, _ = await asyncio.wait_for(process.communicate(), 600)
        assert process.returncode == 0, f"{script}\n{output.decode()}"
        return output.decode()

    async def row(self) -> AutomationRunDetail:
        return await self.engine.get(self.automation_id, self.run_id)

    async def sweep(self) -> None:
        """The reconciler, without its grace."""
        await self.engine.delivered(WorkflowKind.AUTOMATION_RUN)
        database, client = self.engine.database, self.engine.client
        activities = Reconciler(database, client, [AutomationRuns()], grace=timedelta())
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        await environment.run(activities.reconcile)

    async def executions(self) -> list[WorkflowExecutionStatus | None]:
        """The statuses of all executions of the run's workflow id, the newest first."""
        query = f"WorkflowId = '{WorkflowKind.AUTOMATION_RUN.workflow_id(self.run_id)}'"
        found = [one async for one in self.engine.client.list_workflows(query)]
        return [one.status for one in sorted(found, key=lambda one: one.start_time, reverse=True)]


@pytest.fixture
def checkout(engine: Engine, database_url: str, tmp_path: Path) -> Path:
    """A directory that looks like a checkout in which `workspace up` runs."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / ".state").mkdir()
    address = engine.client.service_client.config.target_host
    connection = {"temporalAddress": address, "databaseUrl": database_url}
    (tmp_path / ".state" / "connection.json").write_text(json.dumps(connection))
    return tmp_path


@pytest.fixture
async def desk(engine: Engine, checkout: Path) -> Desk:
    """A desk with a run that waits."""
    content = graph(
        node("first", "transform", label="Before it", output={"ok": True}),
        node("pause", "delay", label="Wait a while", seconds=600),
        edges=[("first", "pause")],
    )
    return await sit_down(engine, checkout, content)


async def sit_down(
    engine: Engine, checkout: Path, content: Any, until: str = "waiting", **fields: Any
) -> Desk:
    automation = await engine.publish(content, **fields)
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == until)
    return Desk(engine, checkout, automation.id, run_id)


def test_every_command_of_the_runbook_is_tried_here() -> None:
    tried = {
        *LOOKS, "Follow a run to its end", "Try the code of a checkout on a run", "Cancel",
        "Terminate", "Reset", "Schedules",
        "Back up and restore",  # tests/chaos/test_restore.py
    }  # fmt: skip
    assert {title for title, blocks in BLOCKS.items() if blocks} == tried


POLLERS = re.compile(r"^== (\S+)$(.*?)(?=^== |\Z)", re.MULTILINE | re.DOTALL)
POLLED = {
    "automation": {"workflow", "activity"},
    "io": {"activity"},
    "io-overflow": {"activity"},
    "bulk": {"activity"},
}


@pytest.mark.long
async def test_the_look_at_queues_shows_who_polls_them(desk: Desk) -> None:
    shown = await desk.run("Queues and workers")
    build = f"{VERSION.deployment}:{VERSION.build}"
    assert VERSION.deployment in shown.partition("== ")[0]
    found = {}
    for queue, text in POLLERS.findall(shown):
        backlog, _, pollers = text.partition("Pollers:")
        assert build in backlog
        assert "UNVERSIONED" in backlog
        rows = [line.split() for line in pollers.splitlines()]
        found[queue] = {row[1] for row in rows if row[:1] == [build] and str(os.getpid()) in row[2]}
    assert found == POLLED


@pytest.mark.long
async def test_the_query_of_queues_shows_that_they_have_no_pollers(desk: Desk) -> None:
    async with dev_server() as empty:
        address = empty.client.service_client.config.target_host
        connection = json.dumps({"temporalAddress": address})
        (desk.directory / ".state" / "connection.json").write_text(connection)
        shown = await desk.run("Queues and workers")
    texts = dict(POLLERS.findall(shown))
    assert texts.keys() == POLLED.keys()
    for text in texts.values():
        pollers = text.partition("Pollers:")[2].partition("WorkerInstanceKey")[0]
        assert [line for line in pollers.splitlines() if line.strip()][1:] == []


@pytest.mark.parametrize(
    ("title", "number", "words"),
    [
        ("Connect", 0, ("SERVING",)),
        ("Find executions", 0, ("Running", "AutomationRun", "Total: ")),
        ("Find executions", 1, ("Maintenance",)),
        ("Queues and workers", 0, ("WorkerInstanceKey",)),
        ("What waits", 0, ("Lines of the outbox", "Under way", "Lines of deliveries")),
    ],
)
async def test_a_look_shows_what_it_is_for(
    desk: Desk, title: str, number: int, words: tuple[str, ...]
) -> None:
    reconcile = WorkflowKind.MAINTENANCE.workflow_id("reconcile")
    await desk.engine.client.get_schedule_handle(reconcile).trigger()

    async def is_shown() -> bool:
        shown = await desk.run(title, number)
        return all(word in shown for word in words)

    await eventually(is_shown, what=f"{words} in {title}")


@pytest.mark.long
@pytest.mark.parametrize("title", LOOKS)
async def test_looking_changes_nothing(desk: Desk, title: str) -> None:
    before = await desk.row()
    outputs = [await desk.run(title, number) for number in range(len(BLOCKS[title]))]
    assert all(outputs)
    assert await desk.row() == before


async def test_waiting_work_is_shown_with_its_reason(desk: Desk) -> None:
    workspace_id = desk.engine.actor.workspace_id
    subject, target, job_id = new_id(), new_id(), new_id()
    receiver = {"workspace_id": workspace_id, "channel": "webhook", "target_id": target}
    async with desk.engine.database.transaction() as work:
        soon = work.now + timedelta(hours=1)
        await append(
            work,
            intent=Intent.START,
            workflow_kind=WorkflowKind.EXPORT,
            workspace_id=workspace_id,
            subject_id=subject,
        )
        await work.execute(
            update(outbox)
            .where(outbox.c.subject_id == subject)
            .values(claimed_until=soon, attempts=7)
        )
        workflow_kind = WorkflowKind.DATABASE_DUPLICATE
        await record_job(
            work, workspace_id, desk.engine.actor.user_id, workflow_kind, job_id, subject
        )
        await work.execute(update(job).where(job.c.id == job_id).values(dispatched_at=work.now))
        wanted: dict[str, Any] = {
            **receiver,
            "channel": DeliveryChannel.WEBHOOK,
            "subject_id": subject,
        }
        await accept_deliveries(work, [NewDelivery(**wanted)])
        state = {"failures": 5, "opened": 1, "retry_at": soon}
        await work.execute(insert(delivery_line).values(**receiver, **state))
    lines = (await desk.run("What waits")).splitlines()
    shown = [[word.strip() for word in line.split("|")] for line in lines]
    async with desk.engine.database.transaction() as work:
        await work.execute(delete(outbox).where(outbox.c.subject_id == subject))
        await close_job(work, job_id, JobStatus.CANCELLED)
        await give_up_waiting(work, workspace_id, DeliveryChannel.WEBHOOK, target, EXPIRED)
    workspace = str(workspace_id)
    assert [workspace, "start", "export", "1", "7"] in [row[:5] for row in shown]
    assert [workspace, "database-duplicate", "1"] in shown
    assert [workspace, "webhook", str(target), "1", "0", "5"] in [row[:6] for row in shown]


async def test_an_open_delivery_is_listed_by_its_workspace(desk: Desk) -> None:
    client, workspace_id = desk.engine.client, str(desk.engine.actor.workspace_id)
    listed = WorkflowKind.DELIVERY.workflow_id(new_id())
    # No worker polls its queue, so it stays open.
    handle = await client.start_activity(
        "attempt",
        id=listed,
        task_queue="nobody",
        start_to_close_timeout=timedelta(minutes=1),
        search_attributes=search_attributes(workspace_id, {}, WorkflowKind.DELIVERY),
    )

    async def is_listed() -> bool:
        return listed in await desk.run("Find executions", 2)

    try:
        await eventually(is_listed, what="the delivery in the list")
    finally:
        await handle.terminate()


async def test_a_run_is_found_by_its_workspace_and_automation(desk: Desk) -> None:
    async def is_listed() -> bool:
        return (await desk.run("Find executions")).count(str(desk.run_id)) == 2

    await eventually(is_listed, what="the run in both lists")


async def test_the_description_of_a_run_shows_its_nodes_and_its_code(desk: Desk) -> None:
    read = await desk.run("Look at one run")
    for part in ("AutomationRun", "Wait a while", "waiting", "TimerStarted", "src/workflows"):
        assert part in read
    history = json.loads((desk.directory / "history.json").read_text())
    assert history["events"][0]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"


@pytest.mark.long
async def test_a_run_is_followed_to_its_end(engine: Engine, checkout: Path) -> None:
    content = graph(node("pause", "delay", seconds=3))
    desk = await sit_down(engine, checkout, content)
    output = await desk.run("Follow a run to its end")
    assert "WorkflowExecutionCompleted" in output
    assert "succeeded" in output
    assert (await desk.row()).status == "succeeded"


@pytest.mark.long
async def test_the_code_of_a_checkout_is_tried_on_runs(desk: Desk) -> None:
    output = await desk.run("Try the code of a checkout on a run")
    assert "still open" in output
    assert "Saved the history of" in output
    assert "AutomationRun" in output.splitlines()[-1]


async def test_a_cancel_in_temporal_closes_the_row(desk: Desk) -> None:
    await desk.run("Cancel")
    run = await desk.engine.ended(desk.automation_id, desk.run_id)
    assert (run.status, run.error) == ("cancelled", "Cancelled in Temporal.")
    assert by_node(run)["pause"].status == "cancelled"
    await desk.sweep()
    assert await desk.row() == run


async def test_a_terminated_run_is_closed_by_the_reconciler(desk: Desk) -> None:
    await desk.run("Terminate")
    assert (await desk.row()).status == "waiting"
    await desk.sweep()
    run = await desk.row()
    assert (run.status, run.error) == ("failed", "Terminated in Temporal.")
    assert by_node(run)["pause"].status == "cancelled"


@pytest.mark.long
async def test_an_execution_that_timed_out_is_closed_by_the_reconciler(
    engine: Engine, checkout: Path
) -> None:
    automation = await engine.publish(graph(node("pause", "delay", seconds=600)))
    async with engine.database.transaction() as work:
        run_id = (await engine.accept(work, automation.id)).id
        await work.execute(delete(outbox).where(outbox.c.subject_id == run_id))
    await engine.client.start_workflow(
        "AutomationRun",
        str(run_id),
        id=WorkflowKind.AUTOMATION_RUN.workflow_id(run_id),
        task_queue=Queue.AUTOMATION,
        execution_timeout=timedelta(seconds=2),
    )
    desk = Desk(engine, checkout, automation.id, run_id)

    async def timed_out() -> bool:
        return await desk.executions() == [WorkflowExecutionStatus.TIMED_OUT]

    await eventually(timed_out, what="the timeout")
    await desk.sweep()
    run = await desk.row()
    assert (run.status, run.error) == ("timed_out", "The execution timed out.")


@pytest.mark.long
@pytest.mark.parametrize("block", range(3), ids=["last-task", "event", "query"])
async def test_a_reset_run_continues_and_its_row_stays_true(desk: Desk, block: int) -> None:
    before = await desk.row()

    async def is_visible() -> bool:
        return len(await desk.executions()) == 1

    await eventually(is_visible, what="the execution in visibility")
    await desk.run("Reset", block)

    async def goes_on() -> bool:
        open_, *others = await desk.executions()
        closed = others == [WorkflowExecutionStatus.TERMINATED]
        return open_ is WorkflowExecutionStatus.RUNNING and closed

    await eventually(goes_on, what="the new execution")
    run = await desk.engine.until(
        desk.automation_id, desk.run_id, lambda run: run.status == "waiting"
    )
    await desk.sweep()
    assert (await desk.row()).status == "waiting"
    assert by_node(run)["first"] == by_node(before)["first"]
    await desk.engine.cancel(desk.automation_id, desk.run_id)

    async def is_closed() -> bool:
        return (await desk.executions())[0] is not WorkflowExecutionStatus.RUNNING

    await eventually(is_closed, what="the end of the new execution")
    assert (await desk.row()).status == "cancelled"


@pytest.mark.long
async def test_a_reset_run_does_nothing_twice_and_ends(
    engine: Engine, checkout: Path, serve: Serve
) -> None:
    endpoint = await serve(reply(200, {"ok": True}))
    content = graph(
        node("call", "http_request", method="POST", url=endpoint.url),
        node("pause", "delay", seconds=3),
        node("last", "transform", output={"told": {"type": "node", "value": "call.status"}}),
        edges=[("call", "pause"), ("pause", "last")],
    )
    desk = await sit_down(engine, checkout, content)
    await desk.run("Reset", 1)
    run = await engine.ended(desk.automation_id, desk.run_id)
    assert (run.status, run.output) == ("succeeded", {"last": {"told": 200}})
    assert len(endpoint.requests) == 1

    # And once it has ended, a reset changes nothing any more.
    await desk.run("Reset", 1)
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(desk.run_id))

    async def is_closed() -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED

    await eventually(is_closed, what="the end of the second execution")
    assert await handle.result() == "succeeded"
    assert await desk.row() == run
    assert len(endpoint.requests) == 1


@pytest.mark.long
async def test_schedules_are_looked_at_paused_and_triggered(engine: Engine, checkout: Path) -> None:
    content = graph(node("only", "transform", output={"ok": True}))
    trigger = {"kind": "schedule", "cron": "0 * * * *", "timezone": "UTC", "overlap": "allow_all"}
    automation = await engine.publish(content, triggerConfig=trigger)
    desk = Desk(engine, checkout, automation.id, automation.id)
    handle = engine.client.get_schedule_handle(
        WorkflowKind.AUTOMATION_SCHEDULE.workflow_id(automation.id)
    )

    async def is_there() -> bool:
        async for listed in await engine.client.list_schedules():
            if listed.id == handle.id:
                return True
        return False

    await eventually(is_there, what="the schedule")
    assert "maintenance/reconcile" in await desk.run("Schedules", 0)
    await desk.run("Schedules", 1)
    reconcile = engine.client.get_schedule_handle(WorkflowKind.MAINTENANCE.workflow_id("reconcile"))
    assert not (await reconcile.describe()).schedule.state.paused
    await reconcile.pause()  # as the engine of the tests has it
    await desk.run("Schedules", 2)

    async def have_run() -> bool:
        listed = [
            one
            async for one in engine.client.list_workflows(
                f"WorkflowType = 'ScheduleFire' AND ExecutionStatus = 'Completed'"
                f" AND ResourceId = '{automation.id}'"
            )
        ]
        # One by hand, and those of 00:00, 01:00 and 02:00.
        return len(listed) >= 4

    await eventually(have_run, what="the runs that were asked for")


@pytest.mark.long
async def test_the_schedule_of_a_data_source_is_triggered(
    engine: Engine, checkout: Path, serve: Serve
) -> None:
    endpoint = await serve(reply(200, [{"name": "Apple"}]))
    body = {
        "label": "Goods",
        "kind": "http_json",
        "config": {"url": endpoint.url},
        "schedule": {"cron": "0 0 1 1 *"},
    }
    async with engine.database.transaction() as work:
        made = await create_data_source(work, engine.actor, CreateDataSource.model_validate(body))
    await until_schedule(
        engine,
        made.id,
        lambda found: found is not None,
        workflow_kind=WorkflowKind.DATA_SOURCE_SCHEDULE,
    )
    desk = Desk(engine, checkout, made.id, made.id, made.id)
    assert "Goods · refresh" in await desk.run("Schedules", 3)

    async def is_refreshed() -> bool:
        async with engine.database.transaction() as work:
            found = await get_data_source(work, made.workspace_id, made.id)
        return found.latest_status == "succeeded"

    await eventually(is_refreshed, what="the refresh")
