"""The refresh_data_source step: a run of a data source, and its end, for which the step waits."""

from collections.abc import Callable

from activities.automation_runs.nodes.invocation import NodeResult
from activities.contracts import CalledRun
from models.automation.action_runs.execution import ActionRunHeader, called_run_id
from models.automation.action_runs.rules import PlannedStep
from models.automation.actions.rules.configs import RefreshDataSourceConfig
from models.automation.automation_runs.errors import NodeError
from models.core.base import JsonObject
from models.sources.data_source_runs.commands.acceptance import (
    accept_refresh,
    start_request,
)
from models.sources.data_source_runs.queries import run_in_workspace
from models.sources.data_source_runs.rules import (
    OPEN_RUN,
    DataSourceRunStatus,
    RunTrigger,
    family_of,
)
from runtime.database import UnitOfWork


async def call_refresh(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> NodeResult | None:
    """Accept a refresh; None when the step waits for its end.

    A refresh that is under way already is the result as it stands. Raises what accepting raises.
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
    request = await start_request(work, run)
    workspace_id, family = str(header.workspace_id), family_of(run.data_source_id)
    return CalledRun(str(run_id), workspace_id, dict(request), family, in_line=True)


async def refresh_end(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep
) -> Callable[[], NodeResult] | None:
    """The function that gives the end of the refresh, or raises its failure; None while open."""
    run = await run_in_workspace(work, header.workspace_id, called_run_id(header.run_id, step.id))
    if run.status in OPEN_RUN:
        return None

    def end() -> NodeResult:
        if run.status != DataSourceRunStatus.SUCCEEDED:
            raise NodeError("run_failed", f"The refresh failed: {run.error or run.status}")
        return NodeResult({"runId": str(run.id), "status": run.status, "stats": run.stats})

    return end
