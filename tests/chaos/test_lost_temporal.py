"""Losing Temporal is not losing runs: they continue from the rows in PostgreSQL.

The runs of this file begin with one Temporal. It is then replaced by an empty one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from sqlalchemy import delete, insert, update
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.runs import ActionRuns, AutomationRuns
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.database import Database
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support import actions
from tests.support.engine import Engine, Json, by_node, graph, node, running_engine
from tests.support.patience import eventually
from tests.support.sink import Sink, serving
from tests.support.temporal import dev_server
from tests.support.waits import approval, held, member, publish, resume, waiting, ways

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=20)]

LONG = 3_600


async def sweep(engine: Engine) -> dict[str, int]:
    """One sweep of the reconciler, now."""
    handlers: list[Any] = [AutomationRuns(), ActionRuns()]
    activities = Reconciler(engine.database, engine.client, handlers, grace=timedelta())
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    return await environment.run(activities.reconcile)


@dataclass
class Lost:
    """Runs whose executions are gone, by name, as automation and run; actions likewise."""

    sink: Sink
    runs: dict[str, tuple[Id, Id]] = field(default_factory=dict)
    before: dict[str, AutomationRunDetail] = field(default_factory=dict)
    action: tuple[Id, Id] | None = None
    decider: Actor | None = None


def hears(key: str) -> Json:
    return held("hear", "wait_event", {"eventKey": key})


def calling(sink: Sink, name: str, **fields: Any) -> Json:
    return node(name, "http_request", method="POST", url=sink.url("ok"), **fields)


def after_call(sink: Sink, other: Json) -> Json:
    return graph(
        calling(sink, "call"),
        other,
        node("then", "transform", output={"ok": True}),
        edges=[("call", other["id"]), (other["id"], "then")],
    )


def loop_of_waits(sink: Sink) -> Json:
    """A call for each item of the trigger, and a wait for an event of that name."""
    return graph(
        node("each", "for_each", items={"type": "expression", "value": "trigger.items"},
             parallelism=1),
        calling(sink, "call"),
        held("hear", "wait_event", {"eventKey": {"type": "expression", "value": "item"}}),
        edges=[("each", "call", "item"), ("call", "hear")],
    )  # fmt: skip


async def begin(engine: Engine, lost: Lost) -> None:
    """Bring every run to where it is when Temporal is lost."""
    sink = lost.sink
    pause, loop = after_call(sink, node("pause", "delay", seconds=LONG)), loop_of_waits(sink)
    listener = await engine.publish(
        graph(hears("called")), triggerConfig={"kind": "automation_called"}
    )
    to_listener = {"automationId": str(listener.id)}
    again = graph(
        node("again", "repeat", maxIterations=3, delaySeconds=LONG),
        calling(sink, "call"),
        edges=[("again", "call", "item")],
    )
    many = [f"item {index}" for index in range(3)]
    lost.decider = await member(engine)

    async def park(name: str, content: Json, payload: Json | None = None) -> None:
        lost.runs[name] = await waiting(engine, content, payload)

    parks: list[Awaitable[None]] = [
        park("delay", pause),
        park("over", pause),
        park("told", after_call(sink, hears("told"))),
        park("tell", after_call(sink, hears("tell"))),
        park("timeout", after_call(sink, held("hear", "wait_event", {"timeoutSeconds": LONG}))),
        park("loop", loop, {"items": many}),
        park("long", loop, {"items": [*many, *["never"] * 98]}),
        park("again", again),
        park("ask", approval(lost.decider)),
        park("calls", after_call(sink, node("out", "call_automation", **to_listener))),
    ]
    await asyncio.gather(*parks)
    for key in many[:2]:
        await publish(engine, key)
    for name in ("loop", "long"):
        await engine.until(*lost.runs[name], lambda run: waits_in(run, "each:2") or False)
    await begin_actions(engine, lost, to_listener)


async def begin_actions(engine: Engine, lost: Lost, to_listener: Json) -> None:
    """Start an action, by itself and by a run, and wait for what every run calls."""
    ring = actions.step("ring", "http_request", method="POST", url=lost.sink.url("ok"))
    wait = actions.step("wait", "run_automation", **to_listener, wait=True)
    sequence = await actions.make(engine, "sequence", steps=[ring, wait])
    acting = {"id": "act", "kind": "action", "actionId": str(sequence)}
    automation = await engine.publish(after_call(lost.sink, acting))
    lost.runs["acts"] = automation.id, await engine.start(automation.id)
    lost.action = sequence, await actions.start(engine, sequence)

    async def all_listen() -> bool:
        return len(await engine.open_runs()) == len(lost.runs) + 3

    await eventually(all_listen, what="the called runs")
    await asyncio.gather(
        *(engine.until(*place, lambda run: run.status != "queued") for place in lost.runs.values())
    )


def waits_in(run: AutomationRunDetail, scope_key: str) -> bool:
    return any(one.scope_key == scope_key and one.status == "waiting" for one in run.node_runs)


async def lose(engine: Engine, lost: Lost) -> None:
    """What is decided, and how time goes by, while there is no Temporal."""
    for name, place in lost.runs.items():
        lost.before[name] = await engine.get(*place)
    assert await publish(engine, "told") == 1
    async with engine.database.transaction() as work:
        await work.execute(delete(outbox))
        for name in ("over", "timeout", "again"):
            # An hour later.
            await work.execute(
                update(node_run)
                .where(node_run.c.run_id == lost.runs[name][1], node_run.c.status == "waiting")
                .values(due_at=work.now)
            )


async def interrupted(engine: Engine, lost: Lost, **retry: Any) -> tuple[Id, Id]:
    """A run whose call was under way."""
    fields = {"retry": retry} if retry else {}
    automation = await engine.publish(graph(calling(lost.sink, "call", **fields)))
    async with engine.database.transaction() as work:
        run = await engine.accept(work, automation.id)
        await work.execute(delete(outbox).where(outbox.c.subject_id == run.id))
        began = {"started_at": work.now, "status": "running"}
        await work.execute(
            update(automation_run).where(automation_run.c.id == run.id).values(began)
        )
        own = {"run_id": run.id, "node_id": "call", "scope_key": "", "node_kind": "http_request"}
        row = {**own, **began, "workspace_id": run.workspace_id, "attempt": 1}
        await work.execute(insert(node_run).values(**row, attempt_started_at=work.now))
    return automation.id, run.id


@dataclass
class Story:
    engine: Engine
    lost: Lost

    async def ended(self, name: str) -> AutomationRunDetail:
        return await self.engine.ended(*self.lost.runs[name])

    def calls(self, name: str) -> int:
        """How often the service was called for a run."""
        return len(self.lost.sink.of_run(self.lost.runs[name][1]))


@pytest_asyncio.fixture(scope="module")
async def story(
    own_database: Database, url: str, temporal: WorkflowEnvironment
) -> AsyncIterator[Story]:
    async with serving() as sink:
        lost = Lost(sink)
        async with running_engine(own_database, url, temporal.client) as engine:
            await begin(engine, lost)
        lost.runs["sent"] = await interrupted(engine, lost)
        lost.runs["sent again"] = await interrupted(engine, lost, maxAttempts=2)
        await lose(engine, lost)
        async with (
            dev_server() as empty,
            running_engine(own_database, url, empty.client),
        ):
            restored = Engine(own_database, empty.client, engine.actor)
            counts = await sweep(restored)
            assert counts["automation_runs_closed"] == counts["action_runs_closed"] == 0
            yield Story(restored, lost)


@pytest.mark.long
async def test_a_delay_keeps_its_due_time(story: Story) -> None:
    name, engine = "delay", story.engine
    run = await engine.until(*story.lost.runs[name], lambda run: run.status == "waiting")
    assert by_node(run) == by_node(story.lost.before[name])
    handle = execution(engine.client, run.id)

    async def has_timer() -> bool:
        events = (await handle.fetch_history()).events
        timers = [one.timer_started_event_attributes for one in events
                  if one.HasField("timer_started_event_attributes")]  # fmt: skip
        return any(one.start_to_fire_timeout.ToSeconds() <= LONG for one in timers)

    await eventually(has_timer, what="the timer")
    assert (await story.ended("over")).output == {"then": {"ok": True}}
    assert [story.calls(one) for one in (name, "over")] == [1, 1]


@pytest.mark.long
async def test_a_wait_continues(story: Story) -> None:
    assert (await story.ended("told")).status == "succeeded"
    assert by_node(await story.ended("timeout"))["hear"].status == "succeeded"
    await publish(story.engine, "tell")
    assert (await story.ended("tell")).status == "succeeded"
    assert [story.calls(one) for one in ("told", "tell", "timeout")] == [1, 1, 1]


async def test_an_approval_can_still_be_given(story: Story) -> None:
    place = story.lost.runs["ask"]
    await story.engine.until(*place, lambda run: run.status == "waiting")
    await resume(story.engine, place, "ask", story.lost.decider, decision="approved")
    assert ways(await story.ended("ask")) == {"ask", "yes"}


async def test_a_repeat_pauses_no_more_than_before(story: Story) -> None:
    place = story.lost.runs["again"]
    await story.engine.until(
        *place, lambda run: run.status == "waiting" and story.calls("again") == 2
    )
    await story.engine.cancel(*place)


async def test_a_loop_continues_where_it_was(story: Story) -> None:
    await publish(story.engine, "item 2")
    run = await story.ended("loop")
    assert by_node(run)["each"].output == {"count": 3, "succeeded": 3, "failed": 0}
    assert story.calls("loop") == 3
    run = await story.engine.until(*story.lost.runs["long"], lambda run: waits_in(run, "each:3"))
    assert story.calls("long") == 4
    await story.engine.cancel(*story.lost.runs["long"])


async def test_a_called_run_and_its_caller_continue(story: Story) -> None:
    assert story.lost.action is not None

    async def heard() -> bool:
        await publish(story.engine, "called")
        return not set(open_ids(await story.engine.open_runs())) & {
            story.lost.runs[name][1] for name in ("calls", "acts")
        }

    await eventually(heard, what="the ends of the callers")
    for name in ("calls", "acts"):
        run = await story.ended(name)
        assert (run.status, run.output) == ("succeeded", {"then": {"ok": True}})
        assert story.calls(name) == {"calls": 1, "acts": 2}[name]
    action = await actions.ended(story.engine, *story.lost.action)
    assert (action.status, actions.states(action)) == (
        "succeeded",
        {"ring": "succeeded", "wait": "succeeded"},
    )


def open_ids(rows: Any) -> list[UUID]:
    return [row.id for row in rows]


async def test_a_call_that_was_under_way_counts_as_an_attempt(story: Story) -> None:
    run = await story.ended("sent")
    error = "The worker that executed this attempt was lost."
    assert (run.status, run.error) == ("failed", f"call: {error}")
    again = await story.ended("sent again")
    (shown,) = again.node_runs
    assert (again.status, shown.attempt) == ("succeeded", 2)
    assert [story.calls(one) for one in ("sent", "sent again")] == [0, 1]


def execution(client: Client, run_id: Id) -> Any:
    return client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
