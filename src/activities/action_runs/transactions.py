"""The activities of an action run's workflow (decisions D2). Each is safe to repeat."""

from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.action_runs.steps import ENDED, OUTSIDE, ActionSteps, Attempt, StepReply, StepState
from activities.heartbeats import heartbeats
from activities.patience import patiently
from models.automation.action_runs.execution import ActionRunFacts, abandon, finish, load_facts
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.step_writes import load_statuses
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automations.rules.planner.plan import PlanRetry
from models.core.base import Id
from runtime.database import Database
from runtime.fault_injection import FaultPoint, inject_fault

CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class StepCall:
    """One step of a run."""

    run_id: str
    step_id: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What an execution does next: a step that leaves the machine, a pause, or its end."""

    ended: str | None = None
    step_id: str | None = None
    retry: PlanRetry | None = None


class ActionRunActivities:
    """Carrying out runs that were asked for by themselves."""

    def __init__(self, database: Database, steps: ActionSteps) -> None:
        self._database = database
        self._steps = steps

    @activity.defn(name="advance-action-run")
    async def advance(self, run_id: str) -> Turn:
        """Carry out what is one transaction, step by step, up to what is not, or to the end."""
        try:
            async with self._database.transaction() as work:
                facts = await load_facts(work, Id(run_id))
                statuses = await load_statuses(work, facts)
        except RunClosedError:
            return Turn(ended=CLOSED)
        for step in facts.steps:
            reply = ENDED.get(statuses[step.id])
            if reply is None and step.kind in OUTSIDE:
                return Turn(step_id=step.id, retry=step.retry)
            reply = reply or await self._at_once(Attempt(facts, step))
            if reply.state is StepState.WAITING:
                return Turn()
            if reply.state is StepState.CLOSED:
                return Turn(ended=CLOSED)
            if reply.state is StepState.FAILED and not step.continue_on_error:
                break
        return Turn(ended=await self._finish(facts))

    async def _at_once(self, attempt: Attempt) -> StepReply:
        reply = await self._steps.attempt(attempt)
        return await self._steps.look(attempt) if reply.state is StepState.WAITING else reply

    @activity.defn(name="action-step")
    async def step(self, call: StepCall) -> str:
        """One attempt of a step that leaves the machine; only codes enter history."""
        number = activity.info().attempt
        async with heartbeats():
            try:
                facts = await patiently(lambda: self._facts(call.run_id))
            except RunClosedError:
                return CLOSED
            step = facts.step(call.step_id)
            attempt = Attempt(facts, step, number, last=number >= step.attempts)
            reply = await patiently(lambda: self._steps.attempt(attempt))
        if reply.state is StepState.RETRY:
            raise _again(reply)
        return reply.state

    @activity.defn(name="close-lost-step")
    async def close_lost_step(self, call: StepCall) -> None:
        """Make sure a step whose activity failed is shown as failed."""
        try:
            facts = await self._facts(call.run_id)
        except RunClosedError:
            return
        await self._steps.lost(Attempt(facts, facts.step(call.step_id)))

    @activity.defn(name="close-cancelled-action-run")
    async def close_cancelled_action_run(self, run_id: str) -> None:
        """Close the run of a workflow that an operator cancelled; no change to a closed run."""
        try:
            facts = await self._facts(run_id)
        except RunClosedError:
            return
        async with self._database.transaction() as work:
            status, reason = ActionRunStatus.CANCELLED, "Cancelled in Temporal."
            await abandon(work, facts.workspace_id, facts.run_id, status, reason)

    async def _facts(self, run_id: str) -> ActionRunFacts:
        async with self._database.transaction() as work:
            return await load_facts(work, Id(run_id))

    async def _finish(self, facts: ActionRunFacts) -> str:
        inject_fault(FaultPoint.BEFORE_TERMINAL_WRITE, facts.run_id)
        async with self._database.transaction() as work:
            end = await finish(work, facts)
        inject_fault(FaultPoint.AFTER_TERMINAL_WRITE, facts.run_id)
        return end.status


def _again(reply: StepReply) -> ApplicationError:
    failure = reply.failure
    assert failure is not None, "a retry has a failure"
    delay = failure.retry_after
    return ApplicationError(
        failure.code,
        type=failure.code,
        next_retry_delay=None if delay is None else timedelta(seconds=delay),
        category=ApplicationErrorCategory.BENIGN,
    )
