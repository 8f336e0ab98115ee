"""Pauses against a model: pauses, resumes, starts, cancels, ends and retries in any order."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run
from sqlalchemy import delete, select

from models.automation.automation_runs import execution
from models.automation.automation_runs.commands import run_now
from models.automation.automation_runs.open_runs import cancel_runs
from models.automation.automation_runs.retries import retry
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.shapes import RetryRun, RunNow
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import commands as automations
from models.automation.automations.shapes import CreateAutomation, PublishAutomation
from models.core.base import Id
from models.core.pauses.intents import pause, resting_intent
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseWork, ResumeWork
from models.workspace import pauses
from runtime.database import Database, UnitOfWork
from runtime.temporal.outbox import Intent, outbox
from tests.support.engine import graph, node
from tests.support.exploring import examples
from tests.support.pauses import attend_once, released
from tests.support.spaces import Space

LIMITED = {"kind": "manual", "concurrency": {"limit": 2, "policy": "queue"}}


@dataclass
class Known:
    """What the model knows of a run."""

    automation: int
    status: str = "queued"


class PauseMachine(RuleBasedStateMachine):
    """A free automation and one with two slots, in a workspace: all three can be paused."""

    runner: asyncio.Runner
    database: Database
    space: Space

    def act(self, command: Callable[[UnitOfWork], Awaitable[Any]]) -> Any:
        async def acting() -> Any:
            async with self.database.transaction() as work:
                return await command(work)

        return self.runner.run(acting())

    @initialize()
    def begin(self) -> None:
        self.runs: dict[Id, Known] = {}
        """The runs in the order of their acceptance."""

        async def clear(work: UnitOfWork) -> None:
            for table in (pause, resting_intent, outbox):
                await work.execute(delete(table).where(table.c.workspace_id == self.space.id))

        self.act(clear)
        self.automations = [self.publish(), self.publish(triggerConfig=LIMITED)]
        subjects = [(PauseSubject.AUTOMATION, one) for one in self.automations]
        self.subjects = [*subjects, (PauseSubject.WORKSPACE, self.space.id)]
        self.paused: set[int] = set()

    def publish(self, **fields: Any) -> Id:
        content = graph(node("a", "transform", output={"ok": True}))
        body = CreateAutomation.model_validate(
            {"label": "Test", "enabled": True, "graph": content, **fields}
        )
        actor, keys = self.space.actor, self.space.keys
        made = self.act(lambda work: automations.create_automation(work, actor, keys, body))
        published = PublishAutomation.model_validate({})
        self.act(lambda work: automations.publish(work, actor, keys, made.id, published))
        return UUID(str(made.id))

    def chosen(self, number: int, *statuses: str) -> Id | None:
        ids = [one for one, known in self.runs.items() if known.status in statuses]
        return ids[number % len(ids)] if ids else None

    @rule(which=st.integers(0, 1))
    def accept(self, which: int) -> None:
        body, automation_id = RunNow.model_validate({}), self.automations[which]
        made = self.act(lambda work: run_now(work, self.space.actor, automation_id, body))
        assert made.status == "queued"
        self.runs[made.id] = Known(which)

    @rule(number=st.integers(0, 20))
    def retry(self, number: int) -> None:
        run_id = self.chosen(number, "failed", "succeeded", "cancelled")
        if run_id is None:
            return
        which = self.runs[run_id].automation
        automation_id, body = self.automations[which], RetryRun.model_validate({"from": "start"})
        made = self.act(lambda work: retry(work, self.space.actor, automation_id, run_id, body))
        self.runs[made.id] = Known(which)

    @rule(which=st.integers(0, 2))
    def pause(self, which: int) -> None:
        kind, subject_id = self.subjects[which]
        actor, body = self.space.actor, PauseWork()
        self.act(lambda work: pauses.pause(work, actor, kind, subject_id, body))
        self.paused.add(which)

    @rule(which=st.integers(0, 2), rate=st.sampled_from([None, 60, 120]))
    def resume(self, which: int, rate: int | None) -> None:
        kind, subject_id = self.subjects[which]
        actor, body = self.space.actor, ResumeWork(rate=rate)
        self.act(lambda work: pauses.resume(work, actor, kind, subject_id, body))
        self.paused.discard(which)

    @rule(which=st.integers(0, 2))
    def attend(self, which: int) -> None:
        self.runner.run(attend_once(self.database, self.subjects[which][1]))

    @rule()
    def deliver(self) -> None:
        """What a relay and a worker do about the next start: it begins, once and in its turn."""
        row = self.act(self.next_start)
        if row is None:
            return
        known = self.runs[row.subject_id]
        assert known.status == "queued", "a run started twice, or after its end"
        before = [one for one in self.runs if self.waits_before(one, row.subject_id)]
        assert before == [], "it overtook another of its automation"
        assert not {known.automation, 2} & self.paused, "it started under a pause"
        header = self.act(lambda work: execution.begin(work, row.subject_id))
        assert header is not None
        known.status = "running"

    def waits_before(self, one: Id, other: Id) -> bool:
        ids = list(self.runs)
        same = self.runs[one].automation == self.runs[other].automation
        return same and self.runs[one].status == "queued" and ids.index(one) < ids.index(other)

    async def next_start(self, work: UnitOfWork) -> Any:
        first = select(outbox.c.id).where(outbox.c.workspace_id == self.space.id)
        first = first.where(outbox.c.intent == Intent.START).order_by(outbox.c.id).limit(1)
        return await work.first(
            delete(outbox).where(outbox.c.id.in_(first)).returning(outbox.c.subject_id)
        )

    @rule(number=st.integers(0, 20))
    def cancel(self, number: int) -> None:
        run_id = self.chosen(number, "queued", "running")
        if run_id is not None:
            self.act(lambda work: cancel_runs(work, self.space.id, [run_id]))
            self.runs[run_id].status = "cancelled"

    @rule(number=st.integers(0, 20), status=st.sampled_from(["succeeded", "failed"]))
    def end(self, number: int, status: str) -> None:
        run_id = self.chosen(number, "running")
        if run_id is not None:
            end = RunStatus(status)
            self.act(lambda work: execution.finish(work, run_id, status=end, output=None))
            self.runs[run_id].status = status

    @invariant()
    def each_run_is_where_the_model_has_it(self) -> None:
        rows = {row.id: row for row in self.act(self.rows)}
        assert {one: row.status for one, row in rows.items()} == {
            one: known.status for one, known in self.runs.items()
        }
        standing = self.act(self.starts)
        expected = {one for one, row in rows.items() if row.status == "queued" and row.admitted_at}
        assert sorted(standing) == sorted(expected), "a start is lost, or there twice"

    @invariant()
    def nothing_is_about_to_start_under_a_pause(self) -> None:
        for run_id in self.act(self.in_line):
            assert not {self.runs[run_id].automation, 2} & self.paused

    async def rows(self, work: UnitOfWork) -> Any:
        return await work.rows(
            select(automation_run).where(automation_run.c.id.in_(list(self.runs)))
        )

    async def in_line(self, work: UnitOfWork) -> list[Id]:
        statement = select(outbox.c.subject_id).where(
            outbox.c.workspace_id == self.space.id, outbox.c.intent == Intent.START
        )
        return [row.subject_id for row in await work.rows(statement)]

    async def starts(self, work: UnitOfWork) -> list[Id]:
        resting = select(resting_intent.c.work_id).where(
            resting_intent.c.workspace_id == self.space.id
        )
        rests = [row.work_id for row in await work.rows(resting)]
        return rests + await self.in_line(work)

    def teardown(self) -> None:
        """In the end everything is resumed, and every run starts."""
        if not hasattr(self, "subjects"):
            return
        for which, (_, subject_id) in enumerate(self.subjects):
            self.resume(which, None)
            self.runner.run(released(self.database, subject_id))
        for _, subject_id in self.subjects:
            self.runner.run(released(self.database, subject_id))
        while any(known.status in {"queued", "running"} for known in self.runs.values()):
            before = [known.status for known in self.runs.values()]
            self.deliver()
            if [known.status for known in self.runs.values()] == before:
                self.end(0, "succeeded")
            assert [known.status for known in self.runs.values()] != before, "a run is stuck"


@pytest.mark.long
def test_pauses_do_what_the_model_does(database_url: str, space: Space) -> None:
    with asyncio.Runner() as runner:
        PauseMachine.runner = runner
        PauseMachine.space = space
        PauseMachine.database = Database(database_url, pool_size=2)
        try:
            run(
                PauseMachine,
                settings=settings(
                    max_examples=examples(15),
                    stateful_step_count=40,
                    deadline=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(PauseMachine.database.close())
