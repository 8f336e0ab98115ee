"""The run_automation step: a run of an automation, and its end where the step waits for it."""

from collections.abc import Callable

from activities.automation_runs.nodes.invocation import NodeResult
from activities.contracts import CalledRun
from models.automation.action_runs.execution import ActionRunHeader, called_run_id
from models.automation.action_runs.rules import PlannedStep
from models.automation.actions.rules.configs import RunAutomationConfig
from models.automation.automation_runs.acceptance import TOO_LONG, RunRequest, accept, is_too_long
from models.automation.automation_runs.calls import outcome
from models.automation.automation_runs.errors import NodeError
from models.automation.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.start_intents import accepted_start_request
from models.automation.automations import runnable_versions
from models.automation.automations.rules.triggers.payloads import check_payload
from models.core.base import JsonObject
from runtime.database import UnitOfWork

NOT_LIVE = "There is no published and enabled automation of this id."


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
    # Who waits is the run whose node asked for the action, if there is one.
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
    if accepted.skipped:
        return NodeResult({"runId": None, "status": "skipped"})
    if config.wait:
        return None
    return NodeResult({"runId": str(run_id), "status": RunStatus.QUEUED.value})


async def called_run(work: UnitOfWork, header: ActionRunHeader, step: PlannedStep) -> CalledRun:
    """The run a step waits for, as the step's workflow starts it."""
    run_id = called_run_id(header.run_id, step.id)
    start = await accepted_start_request(work, run_id)
    assert start is not None, "the step has accepted it"
    return CalledRun(str(run_id), str(header.workspace_id), dict(start))


async def called_end(
    work: UnitOfWork, header: ActionRunHeader, step: PlannedStep
) -> Callable[[], NodeResult] | None:
    """The function that gives the end of the run a step waits for, or raises its failure.

    None while the run is open.
    """
    run_id = called_run_id(header.run_id, step.id)
    row = await outcome(work, header.workspace_id, run_id)
    if row is not None and row.status in OPEN_RUN:
        return None

    def end() -> NodeResult:
        if row is None or row.status != RunStatus.SUCCEEDED:
            reason = "It is gone." if row is None else row.error or f"It was {row.status}."
            raise NodeError("run_failed", f"The automation failed: {reason}")
        return NodeResult({"runId": str(run_id), "status": row.status, "output": row.output or {}})

    return end
