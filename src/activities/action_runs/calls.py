"""The steps whose work is a run: how each calls one, and how it ends."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from activities.automation_runs.nodes.invocation import NodeResult, check_named
from activities.contracts import CalledRun
from models.automation.action_runs.execution import ActionRunHeader, called_run_id
from models.automation.action_runs.rules import PlannedStep
from models.automation.actions.rules import (
    ActionKind,
    ImportResourceConfig,
    RefreshDataSourceConfig,
    RunAutomationConfig,
)
from models.automation.automation_runs.acceptance import TOO_LONG, RunRequest, accept, is_too_long
from models.automation.automation_runs.calls import call_event, called_run_outcome
from models.automation.automation_runs.rules import OPEN_RUN, NodeError, RunSource, RunStatus
from models.automation.automation_runs.slots import accepted_start_request
from models.automation.automations import runnable_versions
from models.automation.automations.rules.triggers.configs import check_payload
from models.automation.inbox.commands import keep
from models.core.base import JsonObject
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import find_job
from models.messages.jobs.store import start_request as start_job_request
from models.sources.data_source_runs.acceptance import accept_refresh
from models.sources.data_source_runs.acceptance import start_request as start_refresh_request
from models.sources.data_source_runs.queries import run_in_workspace
from models.sources.data_source_runs.rules import OPEN_RUN as OPEN_REFRESH
from models.sources.data_source_runs.rules import DataSourceRunStatus, RunTrigger, family_of
from models.sources.resource_imports.commands import record_import
from runtime.database import UnitOfWork
from runtime.temporal.families import Family

NOT_LIVE = "No published and enabled automation has this id."


async def call_automation(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> NodeResult | None:
    """Accept a run whose payload is the action's input; None when the step waits for its end.

    Raises NodeError for an automation that cannot be run, and ValidationError for an input that
    does not fit it.
    """
    config = RunAutomationConfig.model_validate(parameters)
    version = await runnable_versions.live(work, header.workspace_id, config.automation_id)
    if version is None:
        raise NodeError("not_found", NOT_LIVE)
    if is_too_long(header.chain):
        raise NodeError("loop", TOO_LONG)
    check_payload(version.trigger_config, header.input)
    run_id = called_run_id(header.run_id, step.id)
    # The caller that waits is the run whose node requested the action, if there is one.
    waiting = header.run_id if header.node is None else header.node.run_id
    request = RunRequest(
        RunSource.AUTOMATION,
        header.input,
        run_id=run_id,
        parent_run_id=waiting if config.wait else None,
        chain=header.chain,
        started_by_caller=config.wait,
    )
    accepted = await accept(work, header.actor, version, request)
    event = call_event(header.workspace_id, header.action_id, run_id, header.input)
    await keep(work, event, {config.automation_id: accepted.judgement})
    if accepted.skipped:
        return NodeResult({"runId": None, "status": "skipped"})
    if config.wait:
        return None
    return NodeResult({"runId": str(run_id), "status": RunStatus.QUEUED.value})


async def called_automation(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep
) -> CalledRun:
    """The run a step waits for, as the step's workflow starts it."""
    run_id = called_run_id(header.run_id, step.id)
    start = await accepted_start_request(work, run_id)
    assert start is not None, "the step has accepted it"
    return CalledRun(str(run_id), str(header.workspace_id), dict(start))


async def automation_end(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep
) -> Callable[[], NodeResult] | None:
    """The function that gives the end of the run a step waits for, or raises its failure.

    None while the run is open.
    """
    run_id = called_run_id(header.run_id, step.id)
    row = await called_run_outcome(work, header.workspace_id, run_id)
    if row is not None and row.status in OPEN_RUN:
        return None

    def end() -> NodeResult:
        if row is None or row.status != RunStatus.SUCCEEDED:
            reason = "It was deleted." if row is None else row.error or f"It was {row.status}."
            raise NodeError("run_failed", f"The automation failed: {reason}")
        return NodeResult({"runId": str(run_id), "status": row.status, "output": row.output or {}})

    return end


async def call_refresh(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> NodeResult | None:
    """Accept a refresh; None when the step waits for its end.

    A refresh that already runs is the result as it is. Raises what accepting raises.
    """
    config = RefreshDataSourceConfig.model_validate(parameters)
    run_id = called_run_id(header.run_id, step.id)
    automated = header.node is not None
    run = await accept_refresh(
        work,
        header.actor,
        config.data_source_id,
        run_id,
        trigger=RunTrigger.AUTOMATION if automated else RunTrigger.ACTION,
        started_by_caller=True,
    )
    if run.id != run_id:
        return NodeResult({"runId": str(run.id), "status": run.status.value})
    return None


async def called_refresh(work: UnitOfWork, header: ActionRunHeader, step: PlannedStep) -> CalledRun:
    """The refresh a step waits for, as the step's workflow starts it."""
    run_id = called_run_id(header.run_id, step.id)
    run = await run_in_workspace(work, header.workspace_id, run_id)
    request = await start_refresh_request(work, run)
    workspace_id, family = str(header.workspace_id), family_of(run.data_source_id)
    return CalledRun(str(run_id), workspace_id, dict(request), family, in_line=True)


async def refresh_end(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep
) -> Callable[[], NodeResult] | None:
    """The function that gives the end of the refresh, or raises its failure; None while open."""
    run = await run_in_workspace(work, header.workspace_id, called_run_id(header.run_id, step.id))
    if run.status in OPEN_REFRESH:
        return None

    def end() -> NodeResult:
        if run.status != DataSourceRunStatus.SUCCEEDED:
            raise NodeError("run_failed", f"The refresh failed: {run.error or run.status}")
        return NodeResult({"runId": str(run.id), "status": run.status, "stats": run.stats})

    return end


async def call_import(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> NodeResult | None:
    """Accept an import, which the step waits for. Raises what `record_import` raises."""
    check_named(parameters, step.parameters)
    config = ImportResourceConfig.model_validate(parameters)
    job_id = called_run_id(header.run_id, step.id)
    await record_import(work, header.actor, job_id, config.connection_id, config.resource)
    return None


async def called_import(work: UnitOfWork, header: ActionRunHeader, step: PlannedStep) -> CalledRun:
    """The import a step waits for, as the step's workflow starts it."""
    job_id = called_run_id(header.run_id, step.id)
    job = await find_job(work, header.workspace_id, Family.RESOURCE_IMPORT, job_id)
    request = dict(start_job_request(job.subject_id, "Import", "action"))
    workspace_id, family = str(header.workspace_id), Family.RESOURCE_IMPORT
    return CalledRun(str(job_id), workspace_id, request, family, in_line=True)


async def import_end(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep
) -> Callable[[], NodeResult] | None:
    """The function that gives the end of the import, or raises its failure; None while open."""
    job_id = called_run_id(header.run_id, step.id)
    job = await find_job(work, header.workspace_id, Family.RESOURCE_IMPORT, job_id)
    if job.status in OPEN_JOB:
        return None

    def end() -> NodeResult:
        if job.status != JobStatus.SUCCEEDED or job.result is None:
            raise NodeError(job.error_code or "run_failed", job.error or "The import failed.")
        return NodeResult({"imported": job.result["counts"], "skipped": job.result["skipped"]})

    return end


@dataclass(frozen=True, slots=True)
class Call:
    """The call of a run by a step, and its end.

    `begin` gives None when the step waits; `awaited` is then the run, and `end` what gives its
    result or raises its failure, None while it is open.
    """

    begin: Callable[
        [UnitOfWork, ActionRunHeader, PlannedStep, JsonObject], Awaitable[NodeResult | None]
    ]
    awaited: Callable[[UnitOfWork, ActionRunHeader, PlannedStep], Awaitable[CalledRun]]
    end: Callable[
        [UnitOfWork, ActionRunHeader, PlannedStep], Awaitable[Callable[[], NodeResult] | None]
    ]


CALLS: Mapping[ActionKind, Call] = {
    ActionKind.IMPORT_RESOURCE: Call(call_import, called_import, import_end),
    ActionKind.REFRESH_DATA_SOURCE: Call(call_refresh, called_refresh, refresh_end),
    ActionKind.RUN_AUTOMATION: Call(call_automation, called_automation, automation_end),
}
"""Kinds whose work is a run."""
