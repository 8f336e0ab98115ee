"""Retrying many runs in one transaction, with an answer for each (ADR 0089)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy import ARRAY, Select, Uuid, any_, func, literal, select

from models.automation.automation_runs import slots
from models.automation.automation_runs.acceptance import accept
from models.automation.automation_runs.admission import concurrency_of, key_of
from models.automation.automation_runs.execution import skip_nodes_of
from models.automation.automation_runs.queries import OPERATION
from models.automation.automation_runs.retries import (
    Begin,
    NodeEnds,
    NotRetriableError,
    Retry,
    RunVersion,
    node_ends,
    plan_retry,
    require_retriable,
)
from models.automation.automation_runs.rows import RetriedRun
from models.automation.automation_runs.rules import RunSource
from models.automation.automation_runs.tables import AutomationRun, automation_run
from models.automation.automations import runnable_versions
from models.core.access.rules import Actor
from models.core.answer_budget import carried, within_budget
from models.core.base import Id
from models.core.expressions.rules.errors import ExpressionError
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError

_run = automation_run.c
_LARGE = ("trigger_payload", "options")


class RetriedBeforeError(NotRetriableError):
    """Another run runs it again already."""

    def __init__(self, run_id: Id) -> None:
        super().__init__("It was retried before.")
        self.run_id = run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkTerms:
    """The terms on which runs are retried, all of them for one operation."""

    operation_id: Id
    begin: Begin
    published: bool = False
    version_id: Id | None = None
    again: bool = False


@dataclass(slots=True)
class BulkRetries:
    """The retries of one transaction: the run ids that were looked at, and what came of each.

    A run that is not among `new_ids` and `refusals` is not in reach. `treated` may be fewer than
    were asked for, where runs are large.
    """

    treated: Sequence[Id]
    new_ids: dict[Id, Id] = field(default_factory=dict)
    refusals: dict[Id, PlatformError] = field(default_factory=dict)


async def retry_several(
    work: UnitOfWork,
    actor: Actor,
    reach: Select[tuple[AutomationRun]],
    run_ids: Sequence[Id],
    terms: BulkTerms,
) -> BulkRetries:
    """Retry the runs that `reach` selects among these; large ones are left for a further call.

    The id of a new run follows from operation and run, so none is ever doubled.
    """
    rows = await _locked(work, reach, run_ids)
    runs: list[AutomationRun] = carried(rows)
    answer = BulkRetries(run_ids)
    if len(runs) < len(rows):
        answer.treated = run_ids[: run_ids.index(rows[len(runs)].id)]
    if not terms.again:
        await _refuse_retried(work, actor, runs, answer)
    retries = await _plan(work, actor, runs, terms, answer)
    await _lock_slots(work, retries.values())
    reused = {}
    for run_id, retry in retries.items():
        try:
            accepted = await accept(work, actor, retry.version, retry.request)
        except PlatformError as error:
            # It refuses before it writes anything.
            answer.refusals[run_id] = error
            continue
        answer.new_ids[run_id] = accepted.run_id
        reused[accepted.run_id] = retry.reused
    await skip_nodes_of(work, actor.workspace_id, reused, outcome="reused")
    return answer


async def _locked(
    work: UnitOfWork, reach: Select[tuple[AutomationRun]], run_ids: Sequence[Id]
) -> Sequence[Any]:
    """The runs in reach, in the order of their ids in `run_ids`, as far as the budget carries.

    Their locks keep two operations from retrying the same run at the same time.
    """
    of_ids = _run.id == any_(literal(list(run_ids), ARRAY(Uuid)))
    await work.execute(
        select(_run.id).where(of_ids).order_by(_run.id).with_for_update(key_share=True)
    )
    place = func.array_position(literal(list(run_ids), ARRAY(Uuid)), _run.id)
    return await work.rows(within_budget(reach.where(of_ids), [place], len(run_ids), _LARGE))


async def _refuse_retried(
    work: UnitOfWork, actor: Actor, runs: Sequence[RetriedRun], answer: BulkRetries
) -> None:
    """Refuse the runs that another run runs again."""
    replays = await work.rows(
        select(_run.id, _run.replay_of_run_id).where(
            _run.workspace_id == actor.workspace_id,
            _run.source == RunSource.REPLAY,
            _run.replay_of_run_id == any_(literal([run.id for run in runs], ARRAY(Uuid))),
        )
    )
    for row in replays:
        answer.refusals[row.replay_of_run_id] = RetriedBeforeError(row.id)


async def _plan(
    work: UnitOfWork,
    actor: Actor,
    runs: Sequence[RetriedRun],
    terms: BulkTerms,
    answer: BulkRetries,
) -> dict[Id, Retry]:
    """The retries of the runs that can be retried; the others get their refusals."""
    versions = _Versions(work, actor, terms)
    ends: Mapping[Id, NodeEnds] = {}
    if terms.begin == "failed":
        ends = await node_ends(work, actor.workspace_id, [run.id for run in runs])
    retries = {}
    for run in runs:
        if run.id in answer.refusals:
            continue
        try:
            require_retriable(run, terms.begin)
            version = await versions.of(run)
            retry = plan_retry(run, version, terms.begin, ends.get(run.id, {}))
        except PlatformError as error:
            answer.refusals[run.id] = error
            continue
        request = replace(
            retry.request,
            run_id=derived_id(terms.operation_id, run.id),
            options={**retry.request.options, OPERATION: str(terms.operation_id)},
            in_bulk=True,
        )
        retries[run.id] = replace(retry, request=request)
    return retries


class _Versions:
    """The versions that runs are retried on, each read and compiled once."""

    def __init__(self, work: UnitOfWork, actor: Actor, terms: BulkTerms) -> None:
        self._work, self._actor, self._terms = work, actor, terms
        self._known: dict[tuple[object, ...], RunVersion | PlatformError] = {}

    async def of(self, run: RetriedRun) -> RunVersion:
        """The version of a retry. Raises as `retries.retry`."""
        key: tuple[object, ...] = (run.automation_id,)
        if self._is_original:
            key = (run.automation_id, run.automation_version_id, run.graph_checksum)
        if key not in self._known:
            try:
                self._known[key] = await self._read(run)
            except PlatformError as error:
                self._known[key] = error
        version = self._known[key]
        if isinstance(version, PlatformError):
            raise version
        return version

    @property
    def _is_original(self) -> bool:
        return not self._terms.published and self._terms.version_id is None

    async def _read(self, run: RetriedRun) -> RunVersion:
        work, actor, automation_id = self._work, self._actor, run.automation_id
        if self._is_original:
            return await runnable_versions.frozen(work, actor, run)
        if self._terms.version_id is None:
            version = await runnable_versions.published(
                work, actor, automation_id, only_enabled=False
            )
        else:
            version = await runnable_versions.named(
                work, actor, automation_id, self._terms.version_id
            )
        plan, _ = await runnable_versions.compiled(work, actor, automation_id, version)
        return version, plan


async def _lock_slots(work: UnitOfWork, retries: Iterable[Retry]) -> None:
    """Take the locks of all keys in one order: two transactions would else wait for each other."""
    keys = set()
    for retry in retries:
        limits = concurrency_of(retry.version.trigger_config, retry.request)
        if limits is None:
            continue
        try:
            key = await evaluate_bounded(partial(key_of, limits, retry.request.payload))
        except ExpressionError:
            continue
        keys.add((retry.version.automation_id, key))
    for automation_id, key in sorted(keys):
        await slots.lock(work, automation_id, key)
