"""Running runs again, one or many: everything, or what failed and what follows it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

import sqlalchemy as sa

from models.automation.automation_runs import rules, run_header, slots
from models.automation.automation_runs.acceptance import RunRequest, accept, concurrency_of, key_of
from models.automation.automation_runs.execution import skip_nodes, skip_nodes_of
from models.automation.automation_runs.open_runs import cancel_runs
from models.automation.automation_runs.queries import OPERATION, detail, load_run
from models.automation.automation_runs.shapes import REDACTED_PATHS, AutomationRunDetail, RetryRun
from models.automation.automation_runs.tables import AutomationRun, automation_run, node_run
from models.automation.automations import runnable_versions
from models.automation.automations.queries import AUTOMATION
from models.automation.automations.references import with_present_keys
from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass, NodeKind, shorten
from models.automation.automations.rules.planner.plan import Plan
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionError
from models.core.pagination import carried_rows, within_budget
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError, RunError
from runtime.processes.bounded_processes import evaluate_bounded

Begin = Literal["failed", "start"]


class NotRetriableError(RunError):
    """The run is open, or none of its nodes failed: there is nothing to run again."""


OPEN = "The run is still open. Wait until it ends, or retry it with cancelFirst."
NOTHING = "No node failed. Retry the run from the start."

_KEPT = (
    "simulate",
    "triggerFailureAutomation",
    "scope",
    "scopeKey",
    "stopAtNodeId",
    REDACTED_PATHS,
)
_OF_NODES = ("mocks", "pinned", "only")
"""Options that name nodes. Nodes that the version does not have are left out of them."""

RunVersion = tuple[runnable_versions.RunnableVersion, Plan]
NodeEnds = Mapping[str, run_header.Reused]
"""The ends of the nodes of a run outside loops."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry about to be accepted, and the nodes that it does not repeat: id, scope and kind."""

    version: runnable_versions.RunnableVersion
    request: RunRequest
    reused: Sequence[tuple[str, str, str]]


async def retry(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    run_id: Id,
    body: RetryRun,
    retry_id: Id | None = None,
) -> AutomationRunDetail:
    """The queued run that runs an ended one again.

    Raises RunError for a run that is open, one of which nothing failed, and a version that is not
    there; ValidationError for a version that no longer compiles.
    """
    if body.cancel_first:
        await cancel_runs(work, actor.workspace_id, [run_id])
    run = await load_run(work, actor, automation_id, run_id)
    require_retriable(run, body.from_)
    version = await _version(work, actor, run, body.version)
    ends: NodeEnds = {}
    if body.from_ == "failed":
        ends = (await node_ends(work, run.workspace_id, [run.id])).get(run.id, {})
    planned = plan_retry(run, version, body.from_, ends)
    request = replace(planned.request, run_id=retry_id)
    if body.version != "original":
        request = replace(request, payload=await _present_payload(work, run))
    new_id = (await accept(work, actor, planned.version, request)).run_id
    await skip_nodes(work, actor.workspace_id, new_id, planned.reused, outcome="reused")
    return await detail(work, actor, automation_id, new_id)


async def _present_payload(work: UnitOfWork, run: rules.RetriedRun) -> JsonObject:
    """The payload of an earlier run for a version of now, which names fields by their keys of now.

    The original version has the keys of then.
    """
    return await with_present_keys(work, run.workspace_id, run.trigger_payload, run.created_at)


def require_retriable(run: rules.RetriedRun, begin: Begin) -> None:
    """Raises NotRetriableError."""
    if run.status in rules.OPEN_RUN:
        raise NotRetriableError(OPEN)
    if begin == "failed" and run.status == rules.RunStatus.SUCCEEDED:
        raise NotRetriableError(NOTHING)


def plan_retry(run: rules.RetriedRun, version: RunVersion, begin: Begin, ends: NodeEnds) -> Retry:
    """The retry of an ended run on a version, given how its own nodes ended. Raises RunError."""
    runnable, plan = version
    options = _options(run, plan)
    executed = _executed(plan, run.start_node_id, options)
    reused: list[run_header.Reused] = []
    if run.start_node_id is not None or begin == "failed":
        options["replays"] = list(run.options.get("replays", ()))
    if begin == "failed":
        reused = _reused(run, executed, ends)
        options["reused"] = [one.to_json() for one in reused]
        options["replays"] = [str(run.id), *options["replays"]][: rules.MAX_REPLAYS]
    request = RunRequest(
        rules.RunSource.REPLAY,
        run.trigger_payload,
        options,
        attributes=run.attributes or {},
        start_node_id=run.start_node_id,
        replay_of_run_id=run.id,
    )
    return Retry(runnable, request, _not_repeated(plan, executed, reused))


async def node_ends(
    work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]
) -> Mapping[Id, NodeEnds]:
    """The ends of the nodes of runs outside loops, by run."""
    rows = await work.rows(
        sa.select(
            node_run.c.run_id,
            node_run.c.node_id,
            node_run.c.status,
            node_run.c.outcome,
            node_run.c.case_key,
        )
        .where(
            node_run.c.workspace_id == workspace_id,
            node_run.c.run_id.in_(sorted(run_ids)),
            node_run.c.scope_key == "",
        )
        .order_by(node_run.c.run_id, node_run.c.node_id)
    )
    facts: dict[Id, dict[str, tuple[str, str | None, str | None]]] = {}
    for row in rows:
        facts.setdefault(row.run_id, {})[row.node_id] = (row.status, row.outcome, row.case_key)
    return {run_id: run_header.ended_nodes(nodes) for run_id, nodes in facts.items()}


async def _version(work: UnitOfWork, actor: Actor, run: rules.RetriedRun, which: str) -> RunVersion:
    if which == "original":
        return await runnable_versions.frozen(work, actor, run)
    if which == "draft":
        version = await runnable_versions.draft(work, actor, run.automation_id)
    else:
        version = await runnable_versions.published(
            work, actor, run.automation_id, only_enabled=False
        )
    plan, _ = await runnable_versions.compiled(work, actor, run.automation_id, version)
    return version, plan


def _options(run: rules.RetriedRun, plan: Plan) -> JsonObject:
    """The options of the earlier run, as far as the plan has the nodes they name."""
    options = {name: run.options[name] for name in _KEPT if name in run.options}
    nodes = plan.nodes_by_id()
    for name in _OF_NODES:
        given = run.options.get(name)
        if isinstance(given, dict):
            options[name] = {key: value for key, value in given.items() if key in nodes}
        elif given is not None:
            options[name] = [node_id for node_id in given if node_id in nodes]
    if rules.is_test(run.source, run.options):
        options["test"] = True
    return options


def _executed(plan: Plan, start_node_id: str | None, options: JsonObject) -> Plan:
    try:
        return run_header.executed_plan(plan, start_node_id, options)
    except KeyError as error:
        gone = shorten(str(error.args[0]))
        raise RunError(
            f'The version has no node "{gone}", at which the run began or stopped.'
        ) from None


def _reused(run: rules.RetriedRun, plan: Plan, ends: NodeEnds) -> list[run_header.Reused]:
    """The ends that are reused. Raises NotRetriableError when nothing is left to run."""
    ended = {one.node_id: one for one in run_header.read_reused(run.options)} | dict(ends)
    known = plan.nodes_by_id()
    reused = run_header.reusable(plan, {key: end for key, end in ended.items() if key in known})
    if reused is None:
        raise NotRetriableError(NOTHING)
    return reused


def _not_repeated(
    plan: Plan, executed: Plan, reused: Sequence[run_header.Reused]
) -> list[tuple[str, str, str]]:
    standing = {one.node_id for one in reused}
    repeated = executed.nodes_by_id().keys() - standing
    return [(node.id, "", node.kind) for node in plan.nodes if node.id not in repeated]


_run = automation_run.c
_LARGE = ("trigger_payload", "options")


class RetriedBeforeError(NotRetriableError):
    """Another run runs it again already."""

    def __init__(self, run_id: Id) -> None:
        super().__init__("The run was already retried.")
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
    reach: sa.Select[tuple[AutomationRun]],
    run_ids: Sequence[Id],
    terms: BulkTerms,
) -> BulkRetries:
    """Retry the runs that `reach` selects among these; large ones are left for a further call.

    The id of a new run follows from operation and run, so none is ever doubled.
    """
    rows = await _locked(work, reach, run_ids)
    runs: list[AutomationRun] = carried_rows(rows)
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
    work: UnitOfWork, reach: sa.Select[tuple[AutomationRun]], run_ids: Sequence[Id]
) -> Sequence[Any]:
    """The runs in reach, in the order of their ids in `run_ids`, as far as the budget carries.

    Their locks keep two operations from retrying the same run at the same time.
    """
    of_ids = _run.id == sa.any_(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid)))
    await work.execute(
        # Without the key, so that node runs, which reference it, can be written meanwhile.
        sa.select(_run.id).where(of_ids).order_by(_run.id).with_for_update(key_share=True)
    )
    place = sa.func.array_position(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid)), _run.id)
    return await work.rows(within_budget(reach.where(of_ids), [place], len(run_ids), _LARGE))


async def _refuse_retried(
    work: UnitOfWork, actor: Actor, runs: Sequence[rules.RetriedRun], answer: BulkRetries
) -> None:
    """Refuse the runs that another run runs again."""
    replays = await work.rows(
        sa.select(_run.id, _run.replay_of_run_id).where(
            _run.workspace_id == actor.workspace_id,
            _run.source == rules.RunSource.REPLAY,
            _run.replay_of_run_id
            == sa.any_(sa.literal([run.id for run in runs], sa.ARRAY(sa.Uuid))),
        )
    )
    for row in replays:
        answer.refusals[row.replay_of_run_id] = RetriedBeforeError(row.id)


async def _plan(
    work: UnitOfWork,
    actor: Actor,
    runs: Sequence[rules.RetriedRun],
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
            payload=run.trigger_payload
            if versions.are_original
            else await _present_payload(work, run),
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

    async def of(self, run: rules.RetriedRun) -> RunVersion:
        """The version of a retry. Raises as `retries.retry`."""
        key: tuple[object, ...] = (run.automation_id,)
        if self.are_original:
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
    def are_original(self) -> bool:
        return not self._terms.published and self._terms.version_id is None

    async def _read(self, run: rules.RetriedRun) -> RunVersion:
        work, actor, automation_id = self._work, self._actor, run.automation_id
        if self.are_original:
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


EFFECTS = tuple(
    kind
    for kind, spec in NODE_KINDS.items()
    if spec.cost in {CostClass.OUTSIDE, CostClass.ACTION} or kind is NodeKind.CALL_AUTOMATION
)
"""The kinds of nodes whose effect no retry can find done."""


class RepeatedEffect(Protocol):
    """A node, and the number of runs in which it succeeded."""

    automation_id: Id
    automation_label: str
    node_id: str
    node_kind: str
    runs: int


async def count_retried(work: UnitOfWork, runs: sa.Select[Any]) -> int:
    """The number of runs, among these ids, that another run runs again already."""
    picked, replay = runs.subquery("picked"), automation_run.alias("replay").c
    retried = sa.exists().where(
        replay.replay_of_run_id == picked.c.id, replay.source == rules.RunSource.REPLAY.value
    )
    count: int = await work.scalar(sa.select(sa.func.count()).select_from(picked).where(retried))
    return count


async def repeated_effects(
    work: UnitOfWork, runs: sa.Select[Any], most: int, *, only_failed: bool
) -> Sequence[RepeatedEffect]:
    """The nodes whose effects succeeded in runs (ids and `automation_id`), and would be repeated.

    With `only_failed` what ended well is reused; but a loop that failed runs whole again.
    """
    picked, node, loop = runs.subquery("picked"), node_run.c, node_run.alias("loop").c
    count = sa.func.count(picked.c.id.distinct())
    statement = (
        sa.select(
            picked.c.automation_id,
            AUTOMATION.label.label("automation_label"),
            node.node_id,
            node.node_kind,
            count.label("runs"),
        )
        .join(node_run, node.run_id == picked.c.id)
        .join(AUTOMATION.id.table, AUTOMATION.id == picked.c.automation_id)
        .where(node.node_kind.in_(EFFECTS), node.status == rules.NodeStatus.SUCCEEDED)
        .group_by(picked.c.automation_id, AUTOMATION.label, node.node_id, node.node_kind)
        .order_by(count.desc(), AUTOMATION.label, node.node_id)
        .limit(most)
    )
    if only_failed:
        around = sa.func.split_part(node.scope_key, ":", 1)
        stands = sa.exists().where(
            loop.run_id == node.run_id,
            loop.node_id == around,
            loop.scope_key == "",
            loop.status == rules.NodeStatus.SUCCEEDED,
        )
        statement = statement.where(node.scope_key != "", ~stands)
    return await work.rows(statement, of=RepeatedEffect)
