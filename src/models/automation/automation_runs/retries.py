"""Running a run again: everything, or what failed and what follows it (decisions D3)."""

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
from models.automation.automation_runs.rules import (
    MAX_REPLAYS,
    OPEN_RUN,
    RunSource,
    RunStatus,
    is_test,
)
from models.automation.automation_runs.shapes import AutomationRunDetail, RetryRun
from models.automation.automation_runs.tables import AutomationRun, node_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.errors import RunError

OPEN = "The run has not ended. Wait until it has, or retry it with cancelFirst."
NOTHING = "Nothing of the run failed, so there is nothing to retry. Retry it from the start."

_KEPT = ("simulate", "triggerFailureAutomation", "scope", "scopeKey", "stopAtNodeId")
_OF_NODES = ("mocks", "pinned", "only")
"""Options that name nodes. Nodes that the version does not have are left out of them."""


async def retry(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, body: RetryRun
) -> AutomationRunDetail:
    """The queued run that runs an ended one again.

    Raises RunError for a run that is open, one of which nothing failed, and a version that is not
    there; ValidationError for a version that no longer compiles.
    """
    if body.cancel_first:
        await cancel_runs(work, actor.workspace_id, [run_id])
    run = await load_run(work, actor, automation_id, run_id)
    if run.status in OPEN_RUN:
        raise RunError(OPEN)
    if body.from_ == "failed" and run.status == RunStatus.SUCCEEDED:
        raise RunError(NOTHING)
    version, plan = await _version(work, actor, run, body.version)
    options = _options(run, plan)
    executed = _executed(plan, run.start_node_id, options)
    reused: list[Reused] = []
    if run.start_node_id is not None or body.from_ == "failed":
        options["replays"] = list(run.options.get("replays", ()))
    if body.from_ == "failed":
        reused = await _reused(work, run, executed)
        options["reused"] = [one.to_json() for one in reused]
        options["replays"] = [str(run.id), *options["replays"]][:MAX_REPLAYS]
    request = RunRequest(
        RunSource.REPLAY,
        run.trigger_payload,
        options,
        start_node_id=run.start_node_id,
        replay_of_run_id=run.id,
    )
    new_id = (await accept(work, actor, version, request)).run_id
    await _show_reused(work, actor, new_id, plan, executed, reused)
    return await detail(work, actor, automation_id, new_id)


async def _version(
    work: UnitOfWork, actor: Actor, run: AutomationRun, which: str
) -> tuple[RunnableVersion, Plan]:
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


def _options(run: AutomationRun, plan: Plan) -> JsonObject:
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


async def _reused(work: UnitOfWork, run: AutomationRun, plan: Plan) -> list[Reused]:
    """The ends that are reused. Raises RunError when nothing is left to run."""
    rows = await work.rows(
        select(node_run.c.node_id, node_run.c.status, node_run.c.outcome, node_run.c.case_key)
        .where(
            node_run.c.workspace_id == run.workspace_id,
            node_run.c.run_id == run.id,
            node_run.c.scope_key == "",
        )
        .order_by(node_run.c.node_id)
    )
    ended = {one.node_id: one for one in read_reused(run.options)}
    ended |= ended_nodes({row.node_id: (row.status, row.outcome, row.case_key) for row in rows})
    known = plan.nodes_by_id()
    reused = reusable(plan, {key: end for key, end in ended.items() if key in known})
    if reused is None:
        raise RunError(NOTHING)
    return reused


async def _show_reused(  # the parts of a retry
    work: UnitOfWork,
    actor: Actor,
    run_id: Id,
    plan: Plan,
    executed: Plan,
    reused: list[Reused],
) -> None:
    """Write the nodes that the run does not repeat as skipped and reused."""
    standing = {one.node_id for one in reused}
    repeated = executed.nodes_by_id().keys() - standing
    nodes = [(node.id, "", node.kind) for node in plan.nodes if node.id not in repeated]
    await skip_nodes(work, actor.workspace_id, run_id, nodes, outcome="reused")
