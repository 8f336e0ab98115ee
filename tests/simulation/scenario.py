"""One scenario: what a seed has people, processes and Temporal do, and the quiet after it."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import psycopg
from temporalio.service import RPCError

from activities.maintenance.reconciler import GRACE
from models.automation.automation_runs import acceptance, commands, retries
from models.automation.automation_runs.acceptance import RunRequest
from models.automation.automation_runs.rules import RunSource
from models.automation.automation_runs.shapes import RetryRun, RunNow
from models.automation.automation_runs.shapes import TestRun as RunTest
from models.automation.automations import runnable_versions
from models.core.base import Id
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseWork, ResumeWork
from models.core.schedules.timetables import due_run_id
from models.workspace import pauses
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.simulation.invariants import ENDS, check
from tests.simulation.processes import EPOCH, Faults, Task, Violation
from tests.simulation.temporal import Execution, Server, payloads_of
from tests.simulation.workers import INFO, as_activity
from tests.simulation.world import Process, World

STEPS = 80
FIRST_CALLS = 2
MOST_QUIET_STEPS = 2_000
MOST_QUIET_TIME = timedelta(minutes=10)
SWEEP_SECONDS = 30

_AUTOMATIONS = ("quick", "slow", "limited", "newest", "failing", "scheduled")
_CALLS = {"accept": 30, "event": 12, "cancel": 18, "retry": 7, "test": 5, "pause": 15}
"""What people do, and how often."""

_LEFT = """
SELECT (SELECT coalesce(jsonb_agg(jsonb_build_array(subject_kind, subject_id)), '[]')
        FROM pause WHERE resumed_at IS NULL),
    EXISTS (SELECT FROM pause WHERE due_at <= now()),
    EXISTS (SELECT FROM outbox WHERE claimed_until IS NULL OR claimed_until < now()),
    EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM resting_intent)
        OR EXISTS (SELECT FROM automation_run WHERE status IN ('queued', 'running', 'waiting'))
"""
"""What is paused, and whether a pause is due, an intent may be claimed, and anything is open."""

_EXPECTED = (RPCError, psycopg.OperationalError, PlatformError)
"""The errors a task may end with: its caller tries again, or reports them."""

Command = Callable[[UnitOfWork], Awaitable[Any]]


class Weather(StrEnum):
    """What may go wrong in a scenario; what its number is divided by chooses."""

    CALM = "calm"
    """Nothing. So nothing needs a repair."""
    ROUGH = "rough"
    """Processes die and calls are lost, which nothing needs a repair for, either."""
    WILD = "wild"
    """Executions are lost, too, or ended by operators, and the reconciler sweeps."""

    @classmethod
    def of(cls, seed: int) -> "Weather":
        return (cls.CALM, cls.ROUGH, cls.WILD, cls.WILD)[seed % 4]


@dataclass
class Scenario:
    """The state of a scenario; `trace` gets a line for every step."""

    world: World
    seed: int
    trace: Callable[[str], None] = lambda _: None
    accepted: set[UUID] = field(default_factory=set)
    """The runs whose acceptance a client has heard of."""
    runs: list[tuple[Id, UUID]] = field(default_factory=list)
    events: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  # to be played again
        self.clock = self.world.clock
        self.weather = Weather.of(self.seed)
        self.faults = Faults(Random(self.seed + 1))  # noqa: S311  # to be played again
        self.faults.on = self.weather is not Weather.CALM
        forgotten = self.random.randint(0, 2) if self.weather is Weather.WILD else 0
        self.trace(f"Temporal forgets signals and cancels: the first {forgotten}")
        self.server = Server(lambda: self.clock.moment, forgotten)
        self.processes = [self._process("first"), self._process("second")]
        self.clients: list[Task] = []
        self.swept_at = self.clock.moment
        self.due_at = self.clock.moment + timedelta(minutes=1)
        self._events = 0
        # Runs of few automations meet, as do calls of few kinds (ADR 0177).
        self._automations = self.random.sample(_AUTOMATIONS, 2)
        self._calls = ["accept", *self.random.sample([*_CALLS][1:], 3)]

    def _process(self, name: str) -> Process:
        return Process(name, self.world, self.server)

    async def run(self) -> None:
        """Everything of the scenario; raises Violation."""
        try:
            await self._advance(self.clock.moment)
            for _ in range(FIRST_CALLS):
                await self._client()
            for _ in range(STEPS):
                await self._choose()
            await self._quiet()
            await check(self.world, self.server, self.accepted, self.events)
        finally:
            await self._end()

    async def _end(self) -> None:
        for process in self.processes:
            await self._kill(process)
        for task in self.clients:
            await task.end()

    # What happens.

    async def _choose(self) -> None:
        acts: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (3, self._client),
            (50, self._go_on),
            (5, self._relay),
            (14, self._workflow_task),
            (6, self._pass_time),
        ]
        if "pause" in self._calls:
            acts.append((1.5, self._attend))
        if "scheduled" in self._automations:
            acts.append((3, self._fire))
        if self.weather is not Weather.CALM:
            acts += [(2, self._die), (1.2, self._lose_client), (1, self._time_out_task)]
        if self.weather is Weather.WILD:
            acts += [(2, self._sweep), (1, self._break_execution)]
        (act,) = self.random.choices([one for _, one in acts], [weight for weight, _ in acts])
        await act()

    async def _go_on(self) -> None:
        tasks = self._tasks()
        if not tasks:
            return
        task = self.random.choice(tasks)
        for _ in range(self.random.choice([1, 1, 2, 3, 5, 8])):
            await self._step(task)
            if task.done:
                break

    def _tasks(self) -> list[Task]:
        return [*self.clients, *(task for one in self.processes for task in one.tasks)]

    async def _step(self, task: Task) -> None:
        self.trace(f"{task.name}: {task.place}")
        await task.go_on()
        await self._reap(task)

    async def _reap(self, task: Task) -> None:
        if not task.done:
            return
        for tasks in (self.clients, *(one.tasks for one in self.processes)):
            if task in tasks:
                tasks.remove(task)
        if task.error is not None and not isinstance(task.error, _EXPECTED):
            raise task.error

    def _begin(self, process: Process | None, name: str, work: Coroutine[Any, Any, Any]) -> Task:
        task = Task(name if process is None else f"{process.name} {name}", self.faults, work)
        (self.clients if process is None else process.tasks).append(task)
        return task

    # People.

    async def _client(self) -> None:
        (name,) = self.random.choices(self._calls, [_CALLS[name] for name in self._calls])
        work = {
            "accept": self._accept,
            "event": self._event,
            "cancel": self._cancel,
            "retry": self._retry,
            "test": self._test,
            "pause": self.random.choice([self._pause, self._resume]),
        }[name]()
        if work is not None:
            self._begin(None, name, work)

    def _automation(self) -> Id:
        return self.world.automations[self.random.choice(self._automations)]

    async def _ask(self, command: Command) -> Any:
        async with self.world.database.transaction() as work:
            return await command(work)

    async def _made(self, automation_id: Id, command: Command) -> None:
        run = await self._ask(command)
        self.accepted.add(UUID(str(run.id)))
        self.runs.append((automation_id, UUID(str(run.id))))

    def _accept(self) -> Coroutine[Any, Any, None]:
        automation_id, actor = self._automation(), self.world.space.actor
        body = RunNow.model_validate({})
        return self._made(
            automation_id, lambda work: commands.run_now(work, actor, automation_id, body)
        )

    def _test(self) -> Coroutine[Any, Any, None]:
        automation_id, actor = self._automation(), self.world.space.actor
        body = RunTest.model_validate({})
        return self._made(
            automation_id, lambda work: commands.test_run(work, actor, automation_id, body)
        )

    def _event(self) -> Coroutine[Any, Any, None]:
        """An event, told again now and then: its run has an id of its own."""
        if not self._events or self.random.random() < 0.6:
            self._events += 1
        number = self.random.randint(1, self._events)
        return self._tell(self.world.automations[self._automations[number % 2]], number)

    async def _tell(self, automation_id: Id, number: int) -> None:
        actor = self.world.space.actor
        request = RunRequest(
            RunSource.RECORD, {"event": number}, run_id=derived_id(automation_id, str(number))
        )

        async def command(work: UnitOfWork) -> Any:
            version = await runnable_versions.published(work, actor, automation_id)
            return await acceptance.accept(work, actor, version, request)

        accepted = await self._ask(command)
        self.events.add(number)
        self.runs.append((automation_id, accepted.run_id))

    def _cancel(self) -> Coroutine[Any, Any, Any] | None:
        if not self.runs:
            return None
        # Earlier runs have ended, mostly.
        (automation_id, run_id), actor = self.random.choice(self.runs[-3:]), self.world.space.actor

        async def cancel() -> None:
            run = await self._ask(lambda work: commands.cancel(work, actor, automation_id, run_id))
            if run.status not in ENDS:
                raise Violation(f"cancel: {run_id} is {run.status} once it was cancelled")

        return cancel()

    def _retry(self) -> Coroutine[Any, Any, Any] | None:
        if not self.runs:
            return None
        (automation_id, run_id), actor = self.random.choice(self.runs), self.world.space.actor
        body = RetryRun.model_validate({"from": self.random.choice(["start", "failed"])})
        return self._made(
            automation_id, lambda work: retries.retry(work, actor, automation_id, run_id, body)
        )

    def _subject(self) -> tuple[PauseSubject, Id]:
        if self.random.random() < 0.3:
            return PauseSubject.WORKSPACE, self.world.space.id
        return PauseSubject.AUTOMATION, self._automation()

    def _pause(self) -> Coroutine[Any, Any, Any]:
        (kind, subject_id), actor = self._subject(), self.world.space.actor
        return self._ask(lambda work: pauses.pause(work, actor, kind, subject_id, PauseWork()))

    def _resume(self) -> Coroutine[Any, Any, Any]:
        (kind, subject_id), actor = self._subject(), self.world.space.actor
        body = ResumeWork(rate=self.random.choice([None, None, 60]))
        return self._ask(lambda work: pauses.resume(work, actor, kind, subject_id, body))

    async def _lose_client(self) -> None:
        if self.clients:
            task = self.random.choice(self.clients)
            self.trace(f"{task.name}: is lost at {task.place}")
            await task.end()
            await self._reap(task)

    # Workers.

    async def _relay(self) -> None:
        process = self.random.choice(self.processes)
        if process.delivering < 20:
            self._begin(process, "claims", self._claim(process))

    async def _claim(self, process: Process) -> None:
        process.delivering += 1
        try:
            rows = await process.relay._claim(5)
        finally:
            process.delivering -= 1
        for row in rows:
            process.note_start(row)
            what = f"delivers {row.intent} of {row.subject_id}"
            self._begin(process, what, process.relay._deliver(row))

    async def _workflow_task(self) -> None:
        waiting = [one for one in self.server.executions.values() if one.has_task]
        if waiting:
            await self._execute(self.random.choice(waiting))

    async def _execute(self, execution: Execution) -> None:
        process = self.random.choice(self.processes)
        attempt = self.server.take(execution)
        work = process.worker.execute(execution, attempt)
        task = self._begin(process, f"executes {execution.run_id}", work)
        task.execution = (execution, attempt)

    async def _sweep(self) -> None:
        if self.clock.moment < EPOCH + GRACE:
            # Nothing is old enough yet.
            return
        self.swept_at = self.clock.moment
        process = self.random.choice(self.processes)
        info = replace(INFO, started_time=self.clock.moment)
        self._begin(process, "sweeps", as_activity(info, process.reconciler.reconcile))

    async def _attend(self) -> None:
        process = self.random.choice(self.processes)
        self._begin(process, "attends to pauses", process.pauses.turn())

    async def _die(self) -> None:
        process = self.random.choice(self.processes)
        if process.tasks and self.random.random() < 0.4:
            # In the middle of a transaction.
            task = self.random.choice(process.tasks)
            task.doomed = True
            await task.go_on()
        self.trace(f"{process.name} dies")
        await self._kill(process)
        self.processes[self.processes.index(process)] = self._process(process.name)

    async def _kill(self, process: Process) -> None:
        for task in list(process.tasks):
            await task.end()
            if task.execution is not None:
                execution, attempt = task.execution
                if execution.attempt == attempt:
                    self.server.time_out(execution)
        process.tasks.clear()
        process.worker.evict_all()

    # Time and Temporal.

    async def _pass_time(self) -> None:
        seconds = self.random.choice([0.5, 2, 6, 11, 21, 40])
        await self._advance(self.clock.moment + timedelta(seconds=seconds))

    async def _advance(self, to: datetime) -> None:
        self.clock.advance(to)
        self.trace(f"it is {self.clock.moment:%H:%M:%S}")
        self.server.fire_timers()
        await self.world.tell_time()

    async def _time_out_task(self) -> None:
        """Temporal waits no longer for a worker, which continues all the same."""
        busy = [one for one in self.server.executions.values() if one.is_open and one.busy]
        if busy:
            self.server.time_out(self.random.choice(busy))

    async def _break_execution(self) -> None:
        found = self.server.open()
        if not found:
            return
        execution = self.random.choice(found)
        (fate,) = self.random.choices(
            (self.server.forget, self.server.terminate, self.server.cancel), (2, 2, 1)
        )
        if fate == self.server.forget and execution.parent is not None:
            # A child is ended before it is removed, and its parent is notified.
            fate = self.server.terminate
        self.trace(f"Temporal: {fate.__name__} {execution.run_id}")
        fate(execution)

    async def _fire(self) -> None:
        """The schedule fires for the next due time; its starts are at least once, too."""
        due = self.due_at
        if self.random.random() < 0.8:
            self.due_at += timedelta(minutes=1)
        automation_id = self.world.automations["scheduled"]
        schedule_id = WorkflowKind.AUTOMATION_SCHEDULE.workflow_id(automation_id)
        self.runs.append((automation_id, due_run_id(schedule_id, due)))
        self.trace(f"the schedule fires for {due:%H:%M}")
        self.server.start(
            f"{schedule_id}-{due:%Y-%m-%dT%H:%M:%SZ}",
            "ScheduleFire",
            payloads_of([schedule_id]),
            1,
            due=due,
        )

    # The end.

    async def _quiet(self) -> None:
        """Nothing new goes wrong: every pause is over, and all that is left is done.

        Temporal may still lose signals and cancels.
        """
        self.faults.on = False
        self.trace("quiet")
        until = self.clock.moment + MOST_QUIET_TIME
        for _ in range(MOST_QUIET_STEPS):
            if self.clock.moment > until:
                break
            tasks = self._tasks()
            if tasks:
                await self._step(tasks[0])
                continue
            waiting = next((one for one in self.server.executions.values() if one.has_task), None)
            if waiting is not None:
                await self._execute(waiting)
            elif not await self._continue():
                return
        raise Violation(f"it does not come to rest: {await self._open()}")

    async def _continue(self) -> bool:
        """Resume what is paused, attend to pauses, claim or wait; False when all is over."""
        process = self.processes[0]
        ((paused, is_due, claims, is_open),) = await self.world.ask(_LEFT)
        delivered = bool(process.relay._delivered)
        if paused:
            for kind, subject_id in paused:
                await self._ask(partial(self._resume_now, PauseSubject(kind), UUID(subject_id)))
        elif is_due:
            self._begin(process, "attends to pauses", process.pauses.turn())
        elif (claims and not self._crowded) or delivered:
            self._crowded = not delivered
            self._begin(process, "claims", self._claim(process))
        elif is_open or self.server.open():
            await self._wait()
        else:
            return False
        return True

    async def _resume_now(self, kind: PauseSubject, subject_id: Id, work: UnitOfWork) -> None:
        body = ResumeWork(rate=None)
        await pauses.resume(work, self.world.space.actor, kind, subject_id, body)

    _crowded = False
    """The last claim of the quiet left what is there: it waits for time to pass."""

    async def _open(self) -> str:
        """The open work, to find the cause."""
        runs = await self.world.ask(
            "SELECT id::text, status, source, admitted_at IS NOT NULL FROM automation_run"
            " WHERE status IN ('queued', 'running', 'waiting')"
        )
        intents = await self.world.ask("SELECT intent, subject_id::text, attempts FROM outbox")
        executions = [(one.run_id, one.busy, len(one.inbox)) for one in self.server.open()]
        return f"runs {runs}, outbox {intents}, executions {executions}"

    async def _wait(self) -> None:
        """Let time pass, to the next timer or by some seconds; sweep every half minute."""
        self._crowded = False
        soon = self.clock.moment + timedelta(seconds=11)
        timer = self.server.next_timer()
        await self._advance(soon if timer is None else min(soon, timer))
        late = self.clock.moment - self.swept_at > timedelta(seconds=SWEEP_SECONDS)
        if late and timer is None and self.weather is Weather.WILD:
            await self._sweep()


async def simulate(world: World, seed: int, trace: Callable[[str], None] = lambda _: None) -> None:
    """Play one scenario. Raises Violation, which names the seed."""
    world.clock.restart(seed)
    await world.clear()
    try:
        await Scenario(world, seed, trace).run()
    except Exception as error:
        raise Violation(
            f"seed {seed} ({Weather.of(seed)}): {type(error).__name__}: {error}"
        ) from error
