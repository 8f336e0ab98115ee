"""Running a run again: everything, or what failed and what follows it (decisions D3)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlalchemy import select

from models.automation.automation_runs.acceptance import RunRequest, accept
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.execution import skip_nodes
from models.automation.automation_runs.plans import (
    Reused,
    ended_nodes,
    executed_plan,
    read_reused,
    reusable,
)
from models.automation.automation_runs.queries import detail, load_run
from models.automation.automation_runs.rows import RetriedRun
from models.automation.automation_runs.rules import (
    MAX_REPLAYS,
    OPEN_RUN,
    RunSource,
    RunStatus,
    is_test,
)
from models.automation.automation_runs.shapes import AutomationRunDetail, RetryRun
from models.automation.automation_runs.tables import node_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.errors import RunError

Begin = Literal["failed", "start"]


class NotRetriableError(RunError):
    """The run is open, or nothing of it failed: there is nothing to run again."""


OPEN = "The run has not ended. Wait until it has, or retry it with cancelFirst."
NOTHING = "Nothing of the run failed, so there is nothing to retry. Retry it from the start."

_KEPT = ("simulate", "triggerFailureAutomation", "scope", "scopeKey", "stopAtNodeId")
_OF_NODES = ("mocks", "pinned", "only")
"""Options that name nodes. Nodes that the version does not have are left out of them."""

RunVersion = tuple[RunnableVersion, Plan]
NodeEnds = Mapping[str, Reused]
"""The ends of the nodes of a run outside loops."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry about to be accepted, and the nodes that it does not repeat: id, scope and kind."""

    version: RunnableVersion
    request: RunRequest
    reused: Sequence[tuple[str, str, str]]


async def retry(  # whose run, and what becomes of it
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
    new_id = (await accept(work, actor, planned.version, request)).run_id
    await skip_nodes(work, actor.workspace_id, new_id, planned.reused, outcome="reused")
    return await detail(work, actor, automation_id, new_id)


def require_retriable(run: RetriedRun, begin: Begin) -> None:
    """Raises NotRetriableError."""
    if run.status in OPEN_RUN:
        raise NotRetriableError(OPEN)
    if begin == "failed" and run.status == RunStatus.SUCCEEDED:
        raise NotRetriableError(NOTHING)


def plan_retry(run: RetriedRun, version: RunVersion, begin: Begin, ends: NodeEnds) -> Retry:
    """The retry of an ended run on a version, given how its own nodes ended. Raises RunError."""
    runnable, plan = version
    options = _options(run, plan)
    executed = _executed(plan, run.start_node_id, options)
    reused: list[Reused] = []
    if run.start_node_id is not None or begin == "failed":
        options["replays"] = list(run.options.get("replays", ()))
    if begin == "failed":
        reused = _reused(run, executed, ends)
        options["reused"] = [one.to_json() for one in reused]
        options["replays"] = [str(run.id), *options["replays"]][:MAX_REPLAYS]
    request = RunRequest(
        RunSource.REPLAY,
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
        select(
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
    return {run_id: ended_nodes(nodes) for run_id, nodes in facts.items()}


async def _version(work: UnitOfWork, actor: Actor, run: RetriedRun, which: str) -> RunVersion:
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


def _options(run: RetriedRun, plan: Plan) -> JsonObject:
    """The options of the earlier run, as far as the plan has the nodes they name."""
    options = {name: run.options[name] for name in _KEPT if name in run.options}
    nodes = plan.nodes_by_id()
    for name in _OF_NODES:
        given = run.options.get(name)
        if isinstance(given, dict):
            options[name] = {key: value for key, value in given.items() if key in nodes}
        elif given is not None:
            options[name] = [node_id for node_id in given if node_id in nodes]
    if is_test(run.source, run.options):
        options["test"] = True
    return options


def _executed(plan: Plan, start_node_id: str | None, options: JsonObject) -> Plan:
    try:
        return executed_plan(plan, start_node_id, options)
    except KeyError as error:
        gone = shorten(str(error.args[0]))
        raise RunError(
            f'The version has no node "{gone}", at which the run began or stopped.'
        ) from None


def _reused(run: RetriedRun, plan: Plan, ends: NodeEnds) -> list[Reused]:
    """The ends that are reused. Raises NotRetriableError when nothing is left to run."""
    ended = {one.node_id: one for one in read_reused(run.options)} | dict(ends)
    known = plan.nodes_by_id()
    reused = reusable(plan, {key: end for key, end in ended.items() if key in known})
    if reused is None:
        raise NotRetriableError(NOTHING)
    return reused


def _not_repeated(
    plan: Plan, executed: Plan, reused: Sequence[Reused]
) -> list[tuple[str, str, str]]:
    standing = {one.node_id for one in reused}
    repeated = executed.nodes_by_id().keys() - standing
    return [(node.id, "", node.kind) for node in plan.nodes if node.id not in repeated]
