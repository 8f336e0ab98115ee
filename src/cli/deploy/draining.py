"""The end of a build: its open work is counted, and moved as far as it replays on this code."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.deploy.deployment import RPC_TIMEOUT, Deployment, Routing, State
from cli.deploy.versioning import other_code, require_build, still_in_use
from cli.families.registry import PINNED
from cli.replay.verdicts import Outcome, Verdict, replay_listed

_AT_ONCE = 20
_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Move:
    """The outcome of a move: verdicts on all executions, and the number that moved."""

    verdicts: Sequence[Verdict]
    moved: int

    @property
    def staying(self) -> Sequence[Verdict]:
        return [verdict for verdict in self.verdicts if not _may_move(verdict)]


async def require_drainable(deployment: Deployment, build_id: str) -> Routing:
    """The deployment, in which the build takes no new work. Raises RefusedError."""
    routing = await deployment.routing()
    build = require_build(deployment, routing, build_id)
    if build.state in {State.CURRENT, State.RAMPING}:
        raise still_in_use(build_id, build.state)
    return routing


async def open_by_type(deployment: Deployment, build_id: str) -> Mapping[str, int]:
    """The number of open executions of each type that stay with a build."""
    client, query = deployment.client, deployment.open_work(build_id, pinned=True)
    counts = {
        name: (await client.count_workflows(f"{query} AND WorkflowType = '{name}'")).count
        for name in sorted(PINNED)
    }
    return {name: count for name, count in counts.items() if count}


async def move_to_current(
    deployment: Deployment,
    build_id: str,
    own_build: str,
    progress: Callable[[int], None],
) -> Move:
    """Move the open work of a build to the current one, where it replays on this code.

    Raises RefusedError when this is not the code of the current build.
    """
    current = (await require_drainable(deployment, build_id)).current
    if current != own_build:
        raise other_code(own_build, current)
    client, query = deployment.client, deployment.open_work(build_id, pinned=True)
    listed = [execution async for execution in client.list_workflows(query)]
    verdicts = await replay_listed(client, listed, 1, progress)
    target = WorkerDeploymentVersion(deployment_name=deployment.name, build_id=current)
    room = asyncio.Semaphore(_AT_ONCE)

    async def move(verdict: Verdict) -> bool:
        async with room:
            return await _move(client, verdict, target)

    clean = [verdict for verdict in verdicts if _may_move(verdict)]
    return Move(verdicts, sum(await asyncio.gather(*(move(verdict) for verdict in clean))))


def _may_move(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.REPLAYS


async def _move(client: Client, verdict: Verdict, target: WorkerDeploymentVersion) -> bool:
    """Have the next task of an execution go to another build; False if it has ended meanwhile.

    From that task on it stays with that build by itself.
    """
    override = VersioningOverride(
        one_time=VersioningOverride.OneTimeOverride(target_deployment_version=target)
    )
    request = UpdateWorkflowExecutionOptionsRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(
            workflow_id=verdict.workflow_id, run_id=verdict.execution_id
        ),
        workflow_execution_options=WorkflowExecutionOptions(versioning_override=override),
        update_mask=FieldMask(paths=["versioning_override"]),
        identity=client.identity,
    )
    try:
        await client.workflow_service.update_workflow_execution_options(
            request, timeout=RPC_TIMEOUT
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


async def wait_until_drained(
    deployment: Deployment, build_id: str, progress: Callable[[int], None]
) -> None:
    """Return when no execution stays with the build any more."""
    while count := await deployment.count(build_id, pinned=True):
        progress(count)
        await asyncio.sleep(_WAIT_SECONDS)
