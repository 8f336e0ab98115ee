"""The deadline of a run: it ends a run that takes too long, and costs nothing otherwise."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.worker import Replayer

from activities.automation_runs.transactions import AutomationRunActivities
from cli.work_handlers.registry import WORKFLOWS
from models.automation.automation_runs.calls import called_run_id
from models.core.base import Id
from runtime.configuration.settings import Settings
from runtime.database import Database
from runtime.temporal.executions import data_converter
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.endpoint import Serve, never, reply
from tests.support.engine import Engine, Json, by_node, graph, node, running_engine
from tests.support.postgres import migrated_database
from tests.support.run_rows import states
from tests.support.temporal import dev_server
from tests.support.waits import event
from workflows.runners import sandboxed_runner

pytestmark = pytest.mark.takes(seconds=20)

LIMIT = timedelta(seconds=1.5)


@pytest_asyncio.fixture(scope="module")
async def hurried() -> AsyncIterator[Engine]:
    """An engine whose runs may last a second and a half."""
    with migrated_database("hurried") as url:
        database = Database(url)
        async with (
            dev_server() as environment,
            running_engine(database, url, environment.client, run_limit=LIMIT) as engine,
        ):
            yield engine
        await database.close()


@pytest.fixture
def limits(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> dict[str, timedelta]:
    """How long single runs of `engine` may last, by the ids of their workflows."""
    del engine  # its activities have been made
    found: dict[str, timedelta] = {}

    def limit(_activities: AutomationRunActivities) -> timedelta:
        return found.get(activity.info().workflow_id or "", timedelta(days=30))

    monkeypatch.setattr(AutomationRunActivities, "_limit", property(limit), raising=False)
    return found


async def start_limited(
    engine: Engine, limits: dict[str, timedelta], automation_id: Id, limit: timedelta
) -> Id:
    """Accept a run that may last so long."""
    async with engine.database.transaction() as work:
        run_id = (await engine.accept(work, automation_id)).id
        limits[WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)] = limit
    return run_id


async def timers(engine: Engine, run_id: object) -> int:
    """The number of timers that the execution of a run has started."""
    handle = engine.client.get_workflow_handle(f"{WorkflowKind.AUTOMATION_RUN}/{run_id}")
    started = EventType.EVENT_TYPE_TIMER_STARTED
    events = [event async for event in handle.fetch_history_events()]
    return sum(event.event_type == started for event in events)


WAITING: dict[str, Json] = {
    "delay": graph(node("it", "delay", seconds=600), node("then", "transform", output={})),
    "event": graph(node("it", "wait_event"), node("then", "transform", output={})),
    "loop": graph(
        node("loop", "for_each", items=[1, 2, 3]),
        node("it", "delay", seconds=600),
        edges=[("loop", "it", "item")],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(WAITING))
async def test_a_run_that_waits_too_long_is_timed_out(hurried: Engine, kind: str) -> None:
    run = await hurried.run(WAITING[kind])
    assert (run.status, run.error) == (
        "timed_out",
        "The run exceeded its time limit of 1.5 seconds.",
    )
    assert run.completed_at is not None
    assert run.started_at is not None
    lasted = run.completed_at - run.started_at
    assert LIMIT <= lasted < LIMIT + timedelta(seconds=20)
    assert states(run)["it"] == "cancelled"
    assert run.metadata["waiting"] == []
    await replays(hurried, run.id)


async def replays(engine: Engine, run_id: object) -> None:
    """The execution of a run replays."""
    handle = engine.client.get_workflow_handle(f"{WorkflowKind.AUTOMATION_RUN}/{run_id}")
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_runner=sandboxed_runner(),
        data_converter=data_converter,
    )
    await replayer.replay_workflow(await handle.fetch_history())


@pytest.mark.long
async def test_a_call_that_takes_too_long_is_aborted(
    engine: Engine, limits: dict[str, timedelta], serve: Serve
) -> None:
    endpoint = await serve(never)
    automation = await engine.publish(graph(node("it", "http_request", url=endpoint.url)))
    # Long enough for the call to begin.
    run_id = await start_limited(engine, limits, automation.id, timedelta(seconds=5))
    run = await engine.ended(automation.id, run_id)
    assert (run.status, states(run)) == ("timed_out", {"it": "cancelled"})


@pytest.mark.long
async def test_a_called_run_ends_with_its_caller(
    engine: Engine, limits: dict[str, timedelta]
) -> None:
    called = await engine.publish(event())
    call = node("call", "call_automation", automationId=str(called.id))
    caller = await engine.publish(graph(call))
    run_id = await start_limited(engine, limits, caller.id, LIMIT)
    run = await engine.ended(caller.id, run_id)
    child = await engine.ended(called.id, called_run_id(run.id, "call", ""))
    assert (run.status, child.status) == ("timed_out", "cancelled")


async def test_a_run_that_ends_in_time_is_not_changed(
    engine: Engine, limits: dict[str, timedelta]
) -> None:
    automation = await engine.publish(graph(node("it", "delay", seconds=0.5)))
    run_id = await start_limited(engine, limits, automation.id, timedelta(seconds=20))
    assert (await engine.ended(automation.id, run_id)).status == "succeeded"


@pytest.mark.long
async def test_a_run_of_quick_nodes_has_no_timer(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply())
    quick = await engine.run(graph(node("it", "transform", output={})))
    waits = await engine.run(graph(node("it", "delay", seconds=0.1)))
    calls = await engine.run(graph(node("it", "http_request", url=endpoint.url)))
    assert [await timers(engine, run.id) for run in (quick, waits, calls)] == [0, 2, 1]


@pytest.mark.long
async def test_a_wait_as_long_as_a_run_may_last_ends_well(skipping_engine: Engine) -> None:
    seconds = timedelta(days=30).total_seconds()
    run = await skipping_engine.run(graph(node("it", "delay", seconds=seconds)))
    assert run.status == "succeeded", run.error


@pytest.mark.long
async def test_thirty_days_and_more_are_too_long(skipping_engine: Engine) -> None:
    run = await skipping_engine.run(
        graph(
            node("first", "delay", seconds=29 * 86_400),
            node("second", "delay", seconds=2 * 86_400),
            edges=[("first", "second")],
        )
    )
    assert (run.status, states(run)) == (
        "timed_out",
        {"first": "succeeded", "second": "cancelled"},
    )
    assert run.error == "The run exceeded its time limit of 30 days."
    assert by_node(run)["second"].output is None


@pytest.mark.parametrize(("given", "seconds"), [(None, 30 * 86_400), ("3600", 3_600)])
def test_the_limit_is_a_setting(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, given: str | None, seconds: int
) -> None:
    if given is not None:
        monkeypatch.setenv("WORKSPACE_RUN_LIMIT_SECONDS", given)
    made = Settings(database_url=settings.database_url, secret_key=settings.secret_key)
    assert made.run_limit_seconds == seconds
