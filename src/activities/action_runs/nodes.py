"""The action node: its action's steps, carried out where the node is.

The action's run is a row of its own, whose id follows from the node; a repeated attempt of the
node goes on at the step that failed.
"""

import asyncio
import contextlib
from itertools import count

from temporalio import activity

from activities.action_runs.steps import ActionSteps, Attempt, StepReply, StepState
from activities.automation_runs.node_execution import CalledNode
from activities.automation_runs.nodes.failures import DATABASE_AWAY
from activities.automation_runs.nodes.invocation import NodeResult, Outgoing
from activities.patience import patiently
from models.automation.action_runs.acceptance import (
    ActionRequest,
    AskingNode,
    accept,
    runnable_action,
)
from models.automation.action_runs.execution import (
    ActionRunFacts,
    Ended,
    abandon,
    ended,
    find_end,
    finish,
    load_facts,
    node_is_open,
)
from models.automation.action_runs.rules import ActionRunStatus, PlannedStep
from models.automation.automation_runs.errors import NodeError, RunClosedError
from models.core.base import Id
from runtime.database import Database, UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.ids import parse_id

LEFT = "The node that asked for it has ended."
"""Why a run is closed that its node no longer carries out."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between two looks for the end of an automation run."""


class NodeActions:
    """Runs of actions that nodes ask for."""

    def __init__(self, database: Database, steps: ActionSteps) -> None:
        self._database = database
        self._steps = steps

    async def perform(self, called: CalledNode, outgoing: Outgoing) -> NodeResult:
        """The result of the action, which is that of its last step.

        Raises NotFoundError and ValidationError for an action that cannot be run, NodeError for
        one that failed, RunClosedError when the node's run is closed.
        """
        accepted = await self._accepted(called, outgoing)
        if isinstance(accepted, Ended):
            return _result(accepted)
        try:
            return _result(await self._carried_out(accepted, last=outgoing.last))
        except asyncio.CancelledError:
            # While the database is away, the run is left to the reconciler.
            with contextlib.suppress(*DATABASE_AWAY):
                await asyncio.shield(self._left(accepted, last=outgoing.last))
            raise

    async def _accepted(self, called: CalledNode, outgoing: Outgoing) -> ActionRunFacts | Ended:
        """The open run of the node, made now unless an earlier attempt did, or its end."""
        run_id = derived_id("action-run", outgoing.key)
        async with self._database.transaction() as work:
            end = await find_end(work, run_id)
            if end is None:
                await _accept(work, called, outgoing, run_id)
            elif end.status is not ActionRunStatus.STARTED:
                return end
            return await load_facts(work, run_id)

    async def _carried_out(self, facts: ActionRunFacts, *, last: bool) -> Ended:
        for step in facts.steps:
            reply = await self._to_its_end(facts, step, last=last)
            if reply.state is StepState.CLOSED:
                return await self._closed(facts)
            if reply.state is StepState.FAILED and not step.continue_on_error:
                break
        async with self._database.transaction() as work:
            return await finish(work, facts)

    async def _to_its_end(
        self, facts: ActionRunFacts, step: PlannedStep, *, last: bool
    ) -> StepReply:
        """Every attempt of a step. Raises NodeError when the node's next attempt is to go on."""
        for number in count(1):
            final = number >= step.attempts
            reply = await self._tried(Attempt(facts, step, number, last=last and final))
            failure = reply.failure
            if failure is None:
                return reply
            if final:
                raise NodeError(
                    failure.code, failure.message, retryable=True, retry_after=failure.retry_after
                )
            await asyncio.sleep(failure.retry_after or _delay(step, number))
        raise AssertionError("attempts are counted for ever")

    async def _tried(self, attempt: Attempt) -> StepReply:
        """One attempt, and the end of the automation run that it may wait for."""
        reply = await patiently(lambda: self._steps.attempt(attempt))
        pause = FIRST_PAUSE
        while reply.state is StepState.WAITING:
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)
            reply = await patiently(lambda: self._steps.look(attempt))
        return reply

    async def _closed(self, facts: ActionRunFacts) -> Ended:
        """How the action's run was closed. Raises RunClosedError when it is the node's that was."""
        async with self._database.transaction() as work:
            end = await ended(work, facts.run_id)
            if end.status is ActionRunStatus.STARTED:
                await abandon(
                    work, facts.workspace_id, facts.run_id, ActionRunStatus.CANCELLED, LEFT
                )
        if end.status is ActionRunStatus.STARTED:
            raise RunClosedError
        return end

    async def _left(self, facts: ActionRunFacts, *, last: bool) -> None:
        """Close the run unless another attempt goes on with it, here or on another worker."""
        details = activity.cancellation_details()
        # Nobody has cancelled anything when the time of this attempt is over.
        over = last if details is None else details.cancel_requested
        async with self._database.transaction() as work:
            if over or not await node_is_open(work, facts):
                await abandon(
                    work, facts.workspace_id, facts.run_id, ActionRunStatus.CANCELLED, LEFT
                )


async def _accept(work: UnitOfWork, called: CalledNode, outgoing: Outgoing, run_id: Id) -> None:
    run, action_id = called.run.header, parse_id(called.node.action_id or "")
    if action_id is None:
        raise NotFoundError("action")
    action = await runnable_action(work, run.workspace_id, action_id)
    asking = AskingNode(
        run.run_id, called.key.node_id, called.key.scope_key, (*run.chain, run.run_id)
    )
    request = ActionRequest(run_id, outgoing.parameters, asking)
    await accept(work, run.actor, action, request)


def _result(end: Ended) -> NodeResult:
    """The node's result. Raises NodeError for a run that did not succeed."""
    if end.status is ActionRunStatus.SUCCEEDED:
        return NodeResult(end.result or {})
    if end.status is ActionRunStatus.CANCELLED:
        raise NodeError("cancelled", "The run of the action was cancelled.")
    raise NodeError(end.error_code or "action_failed", end.error or "The action failed.")


def _delay(step: PlannedStep, number: int) -> float:
    """Seconds until the attempt after this one, as Temporal would wait (decisions D2)."""
    retry = step.retry
    if retry is None:
        return 0
    delay = retry.initial_delay_seconds * retry.backoff_multiplier ** (number - 1)
    return min(delay, max(retry.max_delay_seconds, retry.initial_delay_seconds))
