"""Treating the runs of a chunk: each action gives an answer for each run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ARRAY, Uuid, any_, literal

from models.automation.automation_runs.bulk_retries import (
    BulkTerms,
    RetriedBeforeError,
    retry_several,
)
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.joins import RUN
from models.automation.automation_runs.retries import NotRetriableError
from models.automation.run_operations.rows import OperationRow
from models.automation.run_operations.rules import OperationAction, RunOutcome
from models.automation.run_operations.selection import in_reach
from models.automation.run_operations.shapes import BulkResume, BulkRetry
from models.automation.waits.bulk_events import give_event
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import PlatformError

UNKNOWN = "There is no such run, or you may not act on it."
ENDED = "The run had ended."
NOT_WAITING = "The run does not wait for an event."
_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Treated:
    """The outcome of an operation for one run."""

    run_id: Id
    outcome: RunOutcome
    reason: str | None = None
    new_run_id: Id | None = None


Treat = Callable[[UnitOfWork, Actor, OperationRow, Sequence[Id]], Awaitable[Sequence[Treated]]]


async def treat(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> Sequence[Treated]:
    """Treat these runs, the first of them at least, in their order."""
    return await _ACTIONS[operation.action](work, actor, operation, run_ids)


async def _cancel(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> Sequence[Treated]:
    reach = await _reached(work, actor, operation, run_ids)
    cancelled = set(await cancel_runs(work, actor.workspace_id, sorted(reach)))
    return [
        Treated(run_id, RunOutcome.SUCCEEDED)
        if run_id in cancelled
        else _skipped(run_id, ENDED if run_id in reach else UNKNOWN)
        for run_id in run_ids
    ]


async def _retry(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> Sequence[Treated]:
    body = BulkRetry.model_validate(operation.parameters, strict=False)
    terms = BulkTerms(
        operation_id=operation.id,
        begin=body.from_,
        published=body.version == "published",
        version_id=body.automation_version_id,
        again=body.again,
    )
    reach = in_reach(actor, operation.action)
    answer = await retry_several(work, actor, reach, run_ids, terms)
    return [
        Treated(run_id, RunOutcome.SUCCEEDED, new_run_id=answer.new_ids[run_id])
        if run_id in answer.new_ids
        else _refused(run_id, answer.refusals)
        for run_id in answer.treated
    ]


async def _resume(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> Sequence[Treated]:
    body = BulkResume.model_validate(operation.parameters, strict=False)
    reach = await _reached(work, actor, operation, run_ids)
    answers = await give_event(work, actor, sorted(reach), body.node_id, body.data)
    return [_resumed(run_id, run_id in reach, answers) for run_id in run_ids]


def _resumed(run_id: Id, reached: bool, answers: Mapping[Id, PlatformError | None]) -> Treated:
    if not reached:
        return _skipped(run_id, UNKNOWN)
    if run_id not in answers:
        return _skipped(run_id, NOT_WAITING)
    error = answers[run_id]
    if error is None:
        return Treated(run_id, RunOutcome.SUCCEEDED)
    return Treated(run_id, RunOutcome.FAILED, _reason(error))


def _refused(run_id: Id, refusals: Mapping[Id, PlatformError]) -> Treated:
    error = refusals.get(run_id)
    if error is None:
        return _skipped(run_id, UNKNOWN)
    if isinstance(error, NotRetriableError):
        replay = error.run_id if isinstance(error, RetriedBeforeError) else None
        return Treated(run_id, RunOutcome.SKIPPED, _reason(error), replay)
    return Treated(run_id, RunOutcome.FAILED, _reason(error))


def _skipped(run_id: Id, reason: str) -> Treated:
    return Treated(run_id, RunOutcome.SKIPPED, reason)


def _reason(error: PlatformError) -> str:
    return error.message[:_LONGEST_REASON]


async def _reached(
    work: UnitOfWork, actor: Actor, operation: OperationRow, run_ids: Sequence[Id]
) -> set[Id]:
    reach = in_reach(actor, operation.action).with_only_columns(RUN.id)
    of_ids = RUN.id == any_(literal(list(run_ids), ARRAY(Uuid)))
    return {row.id for row in await work.rows(reach.where(of_ids))}


_ACTIONS: Mapping[str, Treat] = {
    OperationAction.CANCEL: _cancel,
    OperationAction.RETRY: _retry,
    OperationAction.RESUME: _resume,
}
