"""Worker versioning: the build of this code, which build takes new work, and the end of a build."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version as release_of
from pathlib import Path

import structlog
import typer
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment import v1
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from cli.console import StartError, complain
from cli.deploy.deployment import RPC_TIMEOUT, Build, Deployment, Routing, State
from cli.replay.verdicts import Outcome, Verdict, replay_listed
from cli.work_handlers.registry import PINNED
from runtime.configuration.sections import DeploymentSettings, WorkerVersions
from runtime.configuration.settings import SettingsError

log = structlog.get_logger()

SOURCES = Path(__file__).parents[2]
DETERMINISTIC = ("workflows", "models/automation/automations/rules/planner")
"""The packages that decide which commands an execution gives: others change nothing at a replay."""

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 2.0
_TRIES_IN_SILENCE = 12


@dataclass(frozen=True, slots=True)
class WorkerVersion:
    """A build of the workers, and what it is registered for."""

    deployment: str
    build: str
    use: WorkerVersions = WorkerVersions.NEWEST

    @classmethod
    def of(cls, settings: DeploymentSettings) -> "WorkerVersion":
        build = settings.worker_build or default_build()
        return cls(settings.worker_deployment, build, settings.worker_versions)

    @property
    def takes_over(self) -> bool:
        """True when it executes all open work and all new work."""
        return self.use is not WorkerVersions.PROMOTED

    @property
    def poller_group(self) -> str:
        """The name of the pollers in a task queue; empty for pollers without a version."""
        return "" if self.use is WorkerVersions.OFF else f"{self.deployment}:{self.build}"

    def config(self) -> WorkerDeploymentConfig:
        """The configuration of each of its workers.

        Without a name for the build, the SDK hashes the code of every module.
        """
        versioned = self.use is not WorkerVersions.OFF
        behavior = VersioningBehavior.AUTO_UPGRADE if versioned else VersioningBehavior.UNSPECIFIED
        return WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(self.deployment, self.build),
            use_worker_versioning=versioned,
            default_versioning_behavior=behavior,
        )


async def promote_at_start(client: Client, version: WorkerVersion) -> None:
    """Make the version current as soon as Temporal knows its workers, where settings say so.

    A worker with some of the queues only waits for the workers of the others.
    """
    if version.use is not WorkerVersions.NEWEST:
        return
    deployment = Deployment(client, version.deployment)
    delay, tries = _FIRST_DELAY, 1
    while (refusal := await _refusal(deployment, version.build)) is not None:
        if tries == _TRIES_IN_SILENCE:
            code, reason = refusal.status.name, refusal.message
            log.warning("this build is not current yet", build=version.build, code=code, why=reason)
        await asyncio.sleep(delay)
        delay, tries = min(delay * 2, _LONGEST_DELAY), tries + 1


async def _refusal(deployment: Deployment, build: str) -> RPCError | None:
    try:
        await deployment.promote(build)
    except RPCError as error:
        # Temporal refuses a version until it has seen its pollers, which takes a moment.
        return error
    return None


@cache
def default_build() -> str:
    """The release, and a hash of the code that a replay depends on: `0.0.1-1f0c9d2e7a4b`."""
    digest = hashlib.sha256()
    for package in DETERMINISTIC:
        for path in sorted((SOURCES / package).rglob("*.py")):
            # The separators keep the names and contents of neighbouring files apart.
            digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return f"{release_of('workspace-platform')}-{digest.hexdigest()[:12]}"


_NEVER = datetime.min.replace(tzinfo=UTC)


def require_build(deployment: Deployment, routing: Routing, build_id: str) -> Build:
    """The build of this name. Raises RefusedError."""
    build = routing.build(build_id)
    if build is None:
        names = [build.build_id for build in routing.builds]
        raise unknown_build(deployment.name, build_id, names)
    return build


async def promote(deployment: Deployment, build_id: str) -> str:
    """Make a build current; says what has become of it. Raises RefusedError."""
    routing = await deployment.routing()
    if require_build(deployment, routing, build_id).state is State.CURRENT:
        return f"{build_id} is already current."
    await _require_workers(deployment, build_id)
    await deployment.promote(build_id, routing.token)
    return f"{build_id} is now current. It takes all new work, and open work that is not pinned."


async def ramp(deployment: Deployment, build_id: str, percent: float) -> str:
    """Give a build a share of new work; says what has become of it. Raises RefusedError."""
    routing = await deployment.routing()
    build = require_build(deployment, routing, build_id)
    if build.state is State.CURRENT:
        raise RefusedError(f"Build {build_id} is current. Ramp another build instead.")
    if percent:
        await _require_workers(deployment, build_id)
    elif build.state is not State.RAMPING:
        return f"{build_id} already takes no new work."
    await deployment.ramp(build_id, percent, routing.token)
    share = f"{percent:g}% of" if percent else "no"
    return f"{build_id} takes {share} new work."


async def roll_back(deployment: Deployment) -> str:
    """Make the build current that was so before. Raises RefusedError."""
    builds = (await deployment.routing()).builds
    earlier = _earlier(builds)
    if earlier is None:
        raise RefusedError("There is no previous build.")
    return await promote(deployment, earlier.build_id)


def _earlier(builds: Sequence[Build]) -> Build | None:
    """The build that was current last, before the one that is."""
    candidates = [
        build for build in builds if build.last_current and build.state is not State.CURRENT
    ]
    return max(candidates, key=lambda build: build.last_current or _NEVER, default=None)


async def _require_workers(deployment: Deployment, build_id: str) -> None:
    workers = (await deployment.workers([build_id]))[build_id]
    idle = [queue.value for queue, processes in workers.items() if not processes]
    if idle:
        raise without_workers(build_id, idle)


class RefusedError(Exception):
    """The change makes no sense for the deployment as it is; the message says what to do."""

    retryable = False


def unknown_build(name: str, build: str, builds: Sequence[str]) -> RefusedError:
    if not builds:
        return RefusedError(
            f"No worker has registered for the deployment {name}. Start workers with"
            " WORKSPACE_WORKER_VERSIONS=promoted, or set WORKSPACE_WORKER_DEPLOYMENT."
        )
    known = ", ".join(builds)
    return RefusedError(f"Build {build} not found in the deployment {name}. Builds: {known}.")


def without_workers(build: str, queues: Sequence[str]) -> RefusedError:
    return RefusedError(
        f"Build {build} has no workers for: {', '.join(queues)}. Start its workers first."
    )


def still_in_use(build: str, state: str) -> RefusedError:
    return RefusedError(
        f"Build {build} is {state} and takes new work. Promote another build, or ramp this one to"
        " 0, then drain it."
    )


def other_code(build: str, current: str) -> RefusedError:
    return RefusedError(
        f"This is the code of build {build}, but the current build is {current or 'none'}. Run the"
        " command in a checkout or container of the current build."
    )


@contextmanager
def reported_refusals() -> Iterator[None]:
    """Print why nothing was changed, and exit with code 1."""
    try:
        yield
    except (RefusedError, SettingsError, StartError, ConnectionError) as error:
        complain(str(error))
    except RPCError as error:
        changed = error.status in {RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.ABORTED}
        advice = " The deployment may have changed. Check `workspace deploy status`."
        complain(f"Temporal refused: {error.message}.{advice if changed else ''}")
    else:
        return
    raise typer.Exit(1) from None


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
    target = v1.WorkerDeploymentVersion(deployment_name=deployment.name, build_id=current)
    room = asyncio.Semaphore(_AT_ONCE)

    async def move(verdict: Verdict) -> bool:
        async with room:
            return await _move(client, verdict, target)

    clean = [verdict for verdict in verdicts if _may_move(verdict)]
    return Move(verdicts, sum(await asyncio.gather(*(move(verdict) for verdict in clean))))


def _may_move(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.REPLAYS


async def _move(client: Client, verdict: Verdict, target: v1.WorkerDeploymentVersion) -> bool:
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
