"""Builds of the workers side by side: open work stays with its own, new work goes to another."""

import json
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType

from cli.deploy.deployment import WITHOUT_VERSION, Deployment
from models.core.base import Id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.chaos.processes import Operator, Worker, Workers
from tests.chaos.queries import fetch
from tests.support.engine import VERSION, Engine, graph, node
from tests.support.patience import eventually, found_when
from tests.support.sink import Sink
from tests.support.waits import held, publish

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

OTHER_CODE = """
from temporalio import workflow
from workflows.automation_runs.automation_run import AutomationRun
execute = AutomationRun._execute
async def paused(self):
    await workflow.sleep(0.01)
    return await execute(self)
AutomationRun._execute = paused
"""
"""A build whose runs begin with a timer: this checkout would not give it."""


@pytest_asyncio.fixture
async def deployment(idle: Engine) -> Deployment:
    """The deployment as it is before there is one: workers without a version are current."""
    deployment = Deployment(idle.client, VERSION.deployment)
    if (await deployment.routing()).current != WITHOUT_VERSION:
        await deployment.promote(WITHOUT_VERSION)
    return deployment


@pytest.fixture
def operator(tmp_path: Path, idle: Engine) -> Operator:
    return Operator(tmp_path, idle.client.service_client.config.target_host)


async def start(workers: Workers, build: str, use: str = "promoted", prepared: str = "") -> Worker:
    """A worker of a build that is ready."""
    worker = await workers.start(
        prepared=prepared, WORKSPACE_WORKER_VERSIONS=use, WORKSPACE_WORKER_BUILD=build
    )
    await worker.ready()
    return worker


async def registered(deployment: Deployment, build: str) -> None:
    """Wait until Temporal has heard of a build on every queue."""

    async def is_heard() -> bool:
        if (await deployment.routing()).build(build) is None:
            return False
        return all((await deployment.workers([build]))[build].values())

    await eventually(is_heard, what=f"build {build} on every queue")


async def promoted(
    workers: Workers, deployment: Deployment, operator: Operator, build: str, prepared: str = ""
) -> Worker:
    """A worker of a build that an operator has made current."""
    worker = await start(workers, build, prepared=prepared)
    await registered(deployment, build)
    assert "is now current" in await operator.run("promote", build)
    return worker


async def waiting(engine: Engine, sink: Sink, key: str) -> tuple[Id, Id]:
    """An automation and a run that has called outside, and waits for an event before it does so
    again."""
    call = {"method": "POST", "url": sink.url("quick"), "retry": {"maxAttempts": 3}}
    content = graph(
        node("before", "http_request", **call),
        held("hear", "wait_event", {"eventKey": key}),
        node("after", "http_request", **call),
        edges=[("before", "hear"), ("hear", "after")],
    )
    automation = await engine.publish(content)
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await engine.completed_tasks(run_id, 2)
    return automation.id, run_id


async def quick(engine: Engine) -> Id:
    """A run of one quick node that has ended."""
    return (await engine.run(graph(node("only", "transform", output={})))).id


async def builds_of(engine: Engine, run_id: Id) -> list[str]:
    """The builds that executed a run, in order."""
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    # A row tells of its end within a task, which ends later.
    await engine.completed_tasks(run_id)
    history = await handle.fetch_history()
    tasks = [
        event.workflow_task_completed_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    ]
    return list(dict.fromkeys(task.deployment_version.build_id for task in tasks))


async def shown(operator: Operator, build: str) -> dict[str, object]:
    """One build as the status has it."""
    printed = await operator.run("status", "--json")
    assert printed.startswith("{"), printed
    rows = json.loads(printed)["builds"]
    return next(row for row in rows if row["build"] == build)


async def test_open_work_stays_where_it_began_and_a_killed_worker_loses_none(
    idle: Engine, workers: Workers, deployment: Deployment, operator: Operator, sink: Sink
) -> None:
    old = await promoted(workers, deployment, operator, "a1")
    place = await waiting(idle, sink, "stays")
    await start(workers, "a2")
    await registered(deployment, "a2")
    assert (await shown(operator, "a2"))["state"] == "waiting"
    assert await builds_of(idle, await quick(idle)) == ["a1"], "nobody has promoted the other"

    await operator.run("promote", "a2")
    assert await builds_of(idle, await quick(idle)) == ["a2"]

    async def is_counted() -> bool:
        row = await shown(operator, "a1")
        return (row["state"], row["pinned"], row["percent"]) == ("draining", 1, 0)

    await eventually(is_counted, what="the run that stays")
    old.process.kill()
    await old.ended()
    assert await publish(idle, "stays") == 1
    assert await builds_of(idle, await quick(idle)) == ["a2"]
    assert (await idle.get(*place)).status != "succeeded", "the other build left it alone"

    await start(workers, "a1")
    assert (await idle.ended(*place)).status == "succeeded"
    assert await builds_of(idle, place[1]) == ["a1"]
    assert len(sink.calls) == 2
    assert "1 " not in await operator.run("drain", "a1", "--wait")
    assert "a2 is already current" in await operator.run("promote", "a2")
    assert "a1 is now current" in await operator.run("rollback")
    assert await builds_of(idle, await quick(idle)) == ["a1"]


async def test_a_drain_moves_what_replays(
    idle: Engine, workers: Workers, deployment: Deployment, operator: Operator, sink: Sink
) -> None:
    old = await promoted(workers, deployment, operator, "b1")
    place = await waiting(idle, sink, "moves")
    await promoted(workers, deployment, operator, "b2")

    async def is_told() -> bool:
        return "Open on b1: 1 AutomationRun" in await operator.run("drain", "b1", code=None)

    await eventually(is_told, what="the run in visibility")
    refusal = await operator.run("drain", "b1", "--move", code=1)
    assert "but the current build is b2" in refusal, "this code is of another build"
    told = await operator.run("drain", "b1", "--move", build="b2")
    assert "Moved: 1. Still on b1: 0." in told
    old.process.kill()
    await old.ended()
    assert await publish(idle, "moves") == 1
    assert (await idle.ended(*place)).status == "succeeded"
    assert await builds_of(idle, place[1]) == ["b1", "b2"]
    assert len(sink.calls) == 2


async def test_a_drain_leaves_and_names_what_does_not_replay(
    idle: Engine, workers: Workers, deployment: Deployment, operator: Operator, sink: Sink
) -> None:
    await promoted(workers, deployment, operator, "c1", OTHER_CODE)
    place = await waiting(idle, sink, "differs")
    await promoted(workers, deployment, operator, "c2")

    async def is_counted() -> bool:
        return (await shown(operator, "c1"))["pinned"] == 1

    await eventually(is_counted, what="the run in visibility")
    told = await operator.run("drain", "c1", "--move", build="c2", code=1)
    assert "Moved: 0. Still on c1: 1." in told
    assert str(place[1]) in told
    assert "timer" in told
    assert await publish(idle, "differs") == 1
    assert (await idle.ended(*place)).status == "succeeded"
    assert await builds_of(idle, place[1]) == ["c1"]


async def test_a_ramp_gives_a_build_its_share(
    idle: Engine, workers: Workers, deployment: Deployment, operator: Operator, url: str
) -> None:
    await promoted(workers, deployment, operator, "d1")
    await start(workers, "d2")
    await registered(deployment, "d2")
    assert "takes 50% of" in await operator.run("ramp", "d2", "--percent", "50")
    automation = await idle.publish(graph(node("only", "transform", output={})))
    runs = [await idle.start(automation.id) for _ in range(60)]
    for run_id in runs:
        assert (await idle.ended(automation.id, run_id)).status == "succeeded"
    counts = Counter([(await builds_of(idle, run_id))[0] for run_id in runs])
    assert counts.keys() == {"d1", "d2"}
    # Fewer than ten of sixty come to pass once in a hundred million times.
    assert min(counts.values()) >= 10
    refusal = await operator.run("drain", "d2", code=1)
    assert "d2 is ramping" in refusal
    assert "takes no new work" in await operator.run("ramp", "d2", "--percent", "0")
    assert await builds_of(idle, await quick(idle)) == ["d1"]
    # A delivered row stays for a moment, and is deleted together with later ones.
    rows = partial(fetch, url, "SELECT count(*) FROM outbox")
    await found_when(rows, lambda found: found == [(0,)], "an empty outbox")


async def test_work_that_began_without_versions_continues_with_the_first_promoted_build(
    idle: Engine, workers: Workers, deployment: Deployment, operator: Operator, sink: Sink
) -> None:
    old = await start(workers, "", "off")
    place = await waiting(idle, sink, "switches")
    await start(workers, "e1")
    await registered(deployment, "e1")
    assert await builds_of(idle, await quick(idle)) == [""]
    await operator.run("promote", "e1")
    old.process.terminate()
    assert await old.ended() == 0
    assert await publish(idle, "switches") == 1
    assert (await idle.ended(*place)).status == "succeeded"
    assert await builds_of(idle, place[1]) == ["", "e1"]
    assert len(sink.calls) == 2


async def test_by_default_the_newest_build_takes_open_work_over(
    idle: Engine, workers: Workers, deployment: Deployment, operator: Operator, sink: Sink
) -> None:
    old = await start(workers, "f1", "newest")
    place = await waiting(idle, sink, "follows")
    await start(workers, "f2", "newest")

    async def is_current() -> bool:
        return (await deployment.routing()).current == "f2"

    await eventually(is_current, what="the promotion")
    row = await found_when(lambda: shown(operator, "f1"), lambda row: row["following"] == 1)
    assert row["pinned"] == 0
    old.process.kill()
    await old.ended()
    assert await publish(idle, "follows") == 1
    assert (await idle.ended(*place)).status == "succeeded"
    assert await builds_of(idle, place[1]) == ["f1", "f2"]


async def test_a_change_that_makes_no_sense_is_refused_in_words(
    workers: Workers, deployment: Deployment, operator: Operator
) -> None:
    await promoted(workers, deployment, operator, "g1")
    for arguments, words in (
        (("promote", "g9"), "g9 not found in the deployment"),
        (("ramp", "g1", "--percent", "5"), "g1 is current"),
        (("drain", "g1"), "g1 is current and takes new work"),
    ):
        assert words in await operator.run(*arguments, code=1)
    elsewhere = await operator.run("promote", "g1", code=1, WORKSPACE_WORKER_DEPLOYMENT="absent")
    assert "No worker has registered" in elsewhere
    mistaken = await operator.run("status", code=1, WORKSPACE_WORKER_VERSIONS="oldest")
    assert "must be newest, promoted, off" in mistaken
