"""The import_resource step: an import of a resource, for whose end the step waits."""

from collections.abc import Callable

from activities.automation_runs.nodes.invocation import NodeResult, check_named
from activities.contracts import CalledRun
from models.automation.action_runs.execution import ActionRunHeader, called_run_id
from models.automation.action_runs.rules import PlannedStep
from models.automation.actions.rules.configs import ImportResourceConfig
from models.automation.automation_runs.errors import NodeError
from models.core.base import JsonObject
from models.messages.jobs.commands import start_request
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.sources.resource_imports.commands import record_import
from runtime.database import UnitOfWork
from runtime.families import Family


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
    request = dict(start_request(job.subject_id, "Import", "action"))
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
